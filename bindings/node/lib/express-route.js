'use strict';

// The template of a request's route in Express. The path at which a router is mounted is known to Express only as
// it is in the request, so the values of parameters in it are put back.

/** The parameters that Express last gave a request. */
const CURRENT = Symbol('talea.current');

/** Those of each layer that it passed. */
const PARAMETERS = Symbol('talea.parameters');

/** Whether requests of a prototype note their parameters. */
const NOTES = Symbol('talea.notes');

/** Notes the parameters of each layer that the request passes. */
function noteParameters(request) {
  if (request[PARAMETERS] !== undefined) return;
  request[PARAMETERS] = [];
  const prototype = request.app?.request;
  if (request[NOTES] || prototype === undefined) return;
  const { params } = request;
  delete request.params;
  // Of all requests of the application: an accessor for each would cost more than all else.
  Object.defineProperties(prototype, { params: accessor, [NOTES]: { value: true } });
  request.params = params;
}

const accessor = {
  configurable: true,
  enumerable: true,
  get() {
    return this[CURRENT];
  },
  set(params) {
    this[CURRENT] = params;
    const noted = this[PARAMETERS];
    if (noted === undefined) return;
    for (const _ in params) {
      if (!noted.includes(params)) noted.push(params);
      break;
    }
  },
};

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
