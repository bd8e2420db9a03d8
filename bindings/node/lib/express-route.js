'use strict';

// The template of a request's route in Express. The path at which a router is mounted is known to Express only as
// it is in the request, so the values of parameters in it are put back.

const PARAMETERS = Symbol('talea.parameters');

/** Notes the parameters of each layer that the request passes. */
function noteParameters(request) {
  if (request[PARAMETERS] !== undefined) return;
  const noted = (request[PARAMETERS] = []);
  let current = request.params;
  Object.defineProperty(request, 'params', {
    configurable: true,
    enumerable: true,
    get: () => current,
    set(params) {
      current = params;
      if (params !== undefined && !noted.includes(params)) noted.push(params);
    },
  });
}

/** The template of the route that took a request; undefined if there is none. */
function expressTemplate(request) {
  if (request.route === undefined) return undefined;
  const path = [request.route.path].flat()[0];
  return `${mountTemplate(request)}${path === '/' && request.baseUrl ? '' : path}`;
}

function mountTemplate(request) {
  const { baseUrl } = request;
  if (!baseUrl) return '';
  const segments = baseUrl.split('/');
  // A router that merges parameters has those of the ones around it too.
  const parameters = Object.assign({}, ...(request[PARAMETERS] ?? []));
  for (const [name, value] of Object.entries(parameters)) {
    for (const text of [value].flat()) {
      const at = segments.findIndex((segment) => decoded(segment) === text);
      if (at >= 0) segments[at] = `:${name}`;
    }
  }
  return segments.join('/');
}

function decoded(segment) {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

module.exports = { expressTemplate, noteParameters };
