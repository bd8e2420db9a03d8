// Talea: metrics in shared memory. The C ABI, for bindings of other languages; docs/bindings.md
// has an example, and says what must not be done.
//
// What holds for every function:
// - Pointers point to what their type says, and it stays until the call returns; nobody else
//   writes to it meanwhile. Texts and arrays of the length 0 may be null.
// - Registries, families and series are made by the library, stay until the process ends, may be
//   used by any number of threads at once and in children made by fork, and are never freed.
// - A null pointer, a length that cannot be, text that is not UTF-8 are answered by a status, and
//   nothing is written through the other pointers then.
// - Where there is a `message`, it is a buffer of `message_len` bytes that gets the reason in
//   words, cut where it does not fit, with a zero at its end; of success, the empty text. It may
//   be null.
//
// Written by cbindgen; run TALEA_WRITE_HEADER=1 cargo test -p talea-ffi --test header.

#ifndef TALEA_H
#define TALEA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// The version of the ABI that this header describes. It changes when a program that was
// compiled with an older header could break.
#define TALEA_ABI_VERSION 3

// The metric and its labels may have any names without quotes, backslashes and control
// characters that do not begin with `_`.
#define TALEA_FAMILY_UTF8_NAMES 1

// `schema` of talea_family_options counts.
#define TALEA_FAMILY_SCHEMA 2

// Each CPU has a copy of each value: for counters and histograms of few, hot series. Those
// without labels have it anyway.
#define TALEA_FAMILY_STRIPED 4

// Series never go because nobody uses them.
#define TALEA_FAMILY_LASTING 8

// `quantiles` of talea_family_options counts also where there are none.
#define TALEA_FAMILY_QUANTILES 16

// A summary without a unit keeps what was observed lately in the region, 0.5 to 13.5 KiB a series, so
// that who reads it need not have been there meanwhile: for processes that live for some requests
// only. While its window has no more than 128 observations, quantiles are exact.
#define TALEA_FAMILY_SAMPLED 32

// Names are taken as other libraries take them: also gauges that end in `_total` or `_info`, names
// that end in `_count`, `_sum`, `_bucket` or `_created`, that begin with one `_`, and, where it is
// no histogram and no summary, labels `le` and `quantile`. For metrics that were named by others.
#define TALEA_FAMILY_LENIENT_NAMES 64

// Not even what has no labels has a copy for each CPU. What it held before it was wiped takes no
// digits then of what it counts afterwards, where its values are floats.
#define TALEA_FAMILY_UNSTRIPED 128

// The `group` of talea_open_options may read a new file.
#define TALEA_OPEN_READ_BY_GROUP 1

// The status of a call. More may be added: treat an unknown status as an error.
enum talea_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // It is done.
  TALEA_STATUS_OK = 0,
  // A pointer is null that must not be.
  TALEA_STATUS_NULL = 1,
  // The `size` of a struct is not one that this library knows, or it sets what this library
  // does not know.
  TALEA_STATUS_WRONG_SIZE = 2,
  // A length is more than memory can hold.
  TALEA_STATUS_WRONG_LENGTH = 3,
  // A text is not UTF-8.
  TALEA_STATUS_NOT_UTF8 = 4,
  // There are more label values than the family has labels, or fewer.
  TALEA_STATUS_WRONG_LABELS = 5,
  // Metrics of this kind have no such operation.
  TALEA_STATUS_WRONG_KIND = 6,
  // A metric of this kind cannot take this number: a counter nothing negative, a duration
  // nothing that is no number.
  TALEA_STATUS_WRONG_VALUE = 7,
  // An option has a value that there is not, or that does not go with another.
  TALEA_STATUS_WRONG_OPTION = 8,
  // The region cannot be opened; the message says why.
  TALEA_STATUS_CANNOT_OPEN = 9,
  // The family cannot be registered; the message says why.
  TALEA_STATUS_CANNOT_REGISTER = 10,
  // The buffer is too short; nothing was written to it.
  TALEA_STATUS_TOO_SHORT = 11,
  // The caller's function asked to stop.
  TALEA_STATUS_STOPPED = 12,
  // The region has no room: for another family, or to note what was counted so far when that is
  // wiped, which goes on then.
  TALEA_STATUS_NO_ROOM = 13,
  // An error in the library itself. The call did nothing, or a part; others go on working.
  TALEA_STATUS_PANIC = 14,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum talea_status talea_status;
#else
typedef int32_t talea_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The kind of a family's metrics.
enum talea_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // A total of whole things, that only goes up.
  TALEA_KIND_COUNTER = 1,
  // A total of anything else, that only goes up.
  TALEA_KIND_FLOAT_COUNTER = 2,
  // A number that is set, or goes up and down.
  TALEA_KIND_GAUGE = 3,
  // A gauge of whole numbers, from -2^63 to 2^63 - 1.
  TALEA_KIND_INTEGER_GAUGE = 4,
  // A number of present things, such as requests in flight. Each process counts its own, and its
  // part is removed when it ends.
  TALEA_KIND_UP_DOWN_COUNTER = 5,
  // Observations by size, with their count and sum.
  TALEA_KIND_HISTOGRAM = 6,
  // Quantiles of recent observations, with the count and sum of all.
  TALEA_KIND_SUMMARY = 7,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum talea_kind talea_kind;
#else
typedef uint32_t talea_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The unit of a histogram or a summary. It determines the storage, the suffix of the name, and the
// thresholds if `buckets` has none.
enum talea_unit
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Doubles of any kind, kept as such; powers of ten from 0.001 to 1,000.
  TALEA_UNIT_NONE = 0,
  // Durations in seconds, kept in nanoseconds; `_seconds`; 14 thresholds from 5 ms to 10 s.
  TALEA_UNIT_SECONDS = 1,
  // Whole bytes; `_bytes`; 8 thresholds from 256 B to 4 MiB.
  TALEA_UNIT_BYTES = 2,
  // Whole things; powers of ten from 1 to a million.
  TALEA_UNIT_THINGS = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum talea_unit talea_unit;
#else
typedef uint32_t talea_unit;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// How the processes that share a region make up the value of a gauge.
enum talea_combining
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // The value set last, by any process.
  TALEA_COMBINING_LATEST = 0,
  // The sum of what the living processes set, each its own.
  TALEA_COMBINING_SUM = 1,
  // The largest of these.
  TALEA_COMBINING_MAX = 2,
  // The smallest of these.
  TALEA_COMBINING_MIN = 3,
  // A series for each, with the label `pid`.
  TALEA_COMBINING_EACH = 4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum talea_combining talea_combining;
#else
typedef uint32_t talea_combining;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The buckets of a histogram.
enum talea_buckets
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Those of its thresholds, and exponential ones.
  TALEA_BUCKETS_DUAL = 0,
  // Those of its thresholds alone: the least memory.
  TALEA_BUCKETS_CLASSIC = 1,
  // Exponential ones alone; text formats show the count and the sum.
  TALEA_BUCKETS_NATIVE = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum talea_buckets talea_buckets;
#else
typedef uint32_t talea_buckets;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What a number does to a metric.
enum talea_operation
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // The number is added.
  TALEA_OPERATION_ADD = 1,
  // The number becomes the value.
  TALEA_OPERATION_SET = 2,
  // The number is one observation. A double is in the shown unit (seconds, bytes), and rounded
  // if the unit is kept whole. A whole number is in the unit of storage: nanoseconds, bytes,
  // things. Units that are kept whole take nothing negative and no NaN.
  TALEA_OPERATION_OBSERVE = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum talea_operation talea_operation;
#else
typedef uint32_t talea_operation;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The type of a talea_number.
enum talea_number_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // A double.
  TALEA_NUMBER_KIND_DOUBLE = 0,
  // A uint64_t.
  TALEA_NUMBER_KIND_UNSIGNED = 1,
  // An int64_t.
  TALEA_NUMBER_KIND_SIGNED = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum talea_number_kind talea_number_kind;
#else
typedef uint32_t talea_number_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// A family: metrics of one name. It stays until the process ends.
typedef struct talea_family talea_family;

// A snapshot that is read family by family, by one thread at a time.
typedef struct talea_reading talea_reading;

// A registry: a region of shared memory, and what was registered in it. It stays until the
// process ends, so there is nothing to free. Any number of threads may use one.
typedef struct talea_registry talea_registry;

// A scrape that is under way, used by one thread at a time.
typedef struct talea_rendering talea_rendering;

// A series of a family: one combination of label values, kept. It stays until the process
// ends.
typedef struct talea_series talea_series;

// A text: so many bytes, UTF-8, with or without a zero at their end. Null with the length 0 is
// the empty text.
typedef struct talea_text {
  // Where it begins.
  const char *data;
  // How many bytes it has.
  size_t len;
} talea_text;

// How a region is opened. Zeros are defaults; set `size` by `sizeof`.
typedef struct talea_open_options {
  // How large this struct is.
  size_t size;
  // A file on tmpfs, such as /dev/shm/shop.talea, which is created where it is not there.
  // Empty: memory of this process, which children made by fork share.
  struct talea_text path;
  // Bytes of memory that a new region may come to use; pages are taken as they are needed.
  // 0: 64 MiB, or, where that is less, an eighth of the cgroup's memory limit, or what ulimit -f
  // allows.
  uint64_t len;
  // Series that a new region can hold. 0: one for each 512 bytes.
  uint64_t series;
  // TALEA_OPEN_READ_BY_GROUP, or 0.
  uint32_t flags;
  // The number of the group that may read a new file (mode 0640), where the flag is set.
  uint32_t group;
} talea_open_options;

// A label of a series.
typedef struct talea_label {
  // Its name.
  struct talea_text name;
  // Its value, as it was given.
  struct talea_text value;
} talea_label;

// A number with its type. talea_double, talea_unsigned and talea_signed make one; talea_as_double
// reads any, rounding whole numbers beyond 2^53.
typedef struct talea_number {
  // A talea_number_kind; 64 bits, so that there is no padding.
  uint64_t kind;
  // The bits of the number: an int64_t in two's complement, a double as IEEE 754 has it.
  uint64_t bits;
} talea_number;

// A sample: a line of a scrape.
typedef struct talea_sample {
  // Its name: the family's, or with `_bucket`, `_sum`, `_count` at its end.
  struct talea_text name;
  // A label that it has beside those of its series: `le` of a bucket, `quantile` of a
  // quantile, or none, and its value as a scrape of the text format has it.
  struct talea_label label;
  // That value as a number; 0 if there is none.
  double bound;
  // The value.
  struct talea_number number;
} talea_sample;

// A series with its samples: of a histogram its buckets, which are cumulative, its count and
// its sum; of a summary its quantiles, its count and its sum; of others one.
typedef struct talea_series_view {
  // Its labels. Those of the overflow series are `otel_metric_overflow="true"`, whatever its
  // family's are.
  const struct talea_label *labels;
  // How many these are.
  size_t label_count;
  // Its samples.
  const struct talea_sample *samples;
  // How many these are.
  size_t sample_count;
  // Whether it keeps samples, TALEA_FAMILY_SAMPLED: then the next two tell of its window.
  bool is_sampled;
  // How many observations there were in the window of its quantiles.
  uint64_t window_count;
  // Their sum.
  double window_sum;
} talea_series_view;

// A family with its series, in the order of their birth.
typedef struct talea_family_view {
  // The name, as samples have it (a counter's with `_total`).
  struct talea_text name;
  // counter, gauge, histogram, summary, info or stateset.
  struct talea_text kind;
  // The help.
  struct talea_text help;
  // How often label values counted in its overflow series for want of room.
  uint64_t dropped;
  // Its series.
  const struct talea_series_view *series;
  // How many these are; perhaps 0.
  size_t series_count;
} talea_family_view;

// Options to register a family with. Zero means the default, except in `size`, `kind`, `name` and
// `help`; set `size` by `sizeof`.
typedef struct talea_family_options {
  // How large this struct is.
  size_t size;
  // A talea_kind.
  uint32_t kind;
  // A talea_unit, of histograms and summaries.
  uint32_t unit;
  // The name. It is completed where it does not say so itself: a counter ends in `_total`, a
  // histogram or a summary in its unit.
  struct talea_text name;
  // The help, in a sentence. It must not be empty.
  struct talea_text help;
  // The names of the labels; null where there are none.
  const struct talea_text *label_names;
  // How many these are.
  size_t label_count;
  // TALEA_FAMILY_ flags.
  uint32_t flags;
  // A talea_combining, of gauges.
  uint32_t combining;
  // The most series of the family; further ones count in its overflow series. 0: 2,000.
  uint64_t limit;
  // After how many seconds a series goes that nobody used, in whole minutes. 0: an hour.
  uint64_t expires_after_seconds;
  // Thresholds of a histogram in the shown unit, ascending; null for those of its unit.
  const double *buckets;
  // How many these are.
  size_t bucket_count;
  // Which quantiles a summary shows, ascending, from 0 to 1; null for 0.5, 0.9 and 0.99. A
  // histogram that is given some shows them in a summary beside itself.
  const double *quantiles;
  // How many these are.
  size_t quantile_count;
  // Of how many seconds quantiles are. 0: 600.
  uint64_t window_seconds;
  // A talea_buckets, of histograms.
  uint32_t bucketing;
  // How fine native buckets are, -4 to 8, where TALEA_FAMILY_SCHEMA is set; else 3.
  int32_t schema;
  // How many native buckets of a series are shown at most. 0: 160.
  uint32_t max_buckets;
  // Must be 0.
  uint32_t reserved;
  // How far from 0 an observation may be that counts as 0 where there are too many.
  double widest_zero;
} talea_family_options;

// Takes a piece; anything but 0 stops.
typedef int32_t (*talea_write)(void *context, const char *piece, size_t piece_len);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The version of the ABI that the library has: where it is not TALEA_ABI_VERSION, the header
// belongs to another library, and nothing else should be called.
uint32_t talea_abi_version(void);

// Finds or creates the series of some label values, in the order of the family's labels, and
// keeps it: recording in it costs no look-up. The same values give the same pointer.
//
// For few series that are known beforehand: a kept series stays in memory until the process
// ends, and does not expire. If there is no room for a new one, it is the family's overflow
// series; if the series exists and the region has no room even for the 40 bytes that note that it
// is kept, its updates are discarded. So keep series early.
//
// TALEA_STATUS_NULL, _WRONG_LENGTH, _NOT_UTF8, _WRONG_LABELS.
talea_status talea_series_keep(const struct talea_family *family,
                               const struct talea_text *values,
                               size_t value_count,
                               const struct talea_series **series);

// Removes a series with all its values; the next update creates it anew. A series that a living
// process keeps is left out of scrapes until its next update, and counts from 0. `removed`, which
// may be null, receives whether the series existed.
//
// TALEA_STATUS_NULL, _WRONG_LENGTH, _NOT_UTF8, _WRONG_LABELS.
talea_status talea_remove(const struct talea_family *family,
                          const struct talea_text *values,
                          size_t value_count,
                          bool *removed);

// Whether any process unregistered the family, so that its updates are discarded until it is
// registered again with the same options. True for null. Cost: a load.
bool talea_is_ended(const struct talea_family *family);

// Opens a region: creates it, or attaches to a file that is there, with the limits that this
// was created with. A file that cannot be used is moved aside, or a sibling opened; a line on
// standard error says so.
//
// `options` may be null: memory of this process. Open a region once in a process, and before
// it forks; each opening counts as a process.
//
// TALEA_STATUS_CANNOT_OPEN with a message, or TALEA_STATUS_NULL, _WRONG_SIZE, _WRONG_OPTION,
// _NOT_UTF8.
talea_status talea_open(const struct talea_open_options *options,
                        const struct talea_registry **registry,
                        char *message,
                        size_t message_len);

// Opens the file that the environment variable TALEA_REGION names, readable by the group that
// TALEA_REGION_GROUP names; where it is unset or empty, memory of this process.
//
// TALEA_STATUS_CANNOT_OPEN with a message, or TALEA_STATUS_NULL.
talea_status talea_open_from_environment(const struct talea_registry **registry,
                                         char *message,
                                         size_t message_len);

// Takes a snapshot of the family of a name, which is as samples have it (a counter's with
// `_total`), or of all where the name is empty; talea_read_next reads it. End it by
// talea_read_end.
//
// TALEA_STATUS_NULL, _WRONG_LENGTH, _NOT_UTF8.
talea_status talea_read_begin(const struct talea_registry *registry,
                              struct talea_text name,
                              struct talea_reading **reading);

// Has families that keep samples tell of windows that end at another time, in milliseconds since
// 1970: for tests of what time does. What was observed later than that is not left out.
//
// TALEA_STATUS_NULL.
talea_status talea_reading_at(struct talea_reading *reading, uint64_t unix_millis);

// Reads the next family, by name; null after the last. All that it points to stays until the
// next call.
//
// TALEA_STATUS_NULL.
talea_status talea_read_next(struct talea_reading *reading,
                             const struct talea_family_view **family);

// Ends a reading, at any time. Where it was of all families, its memory stays for the registry's
// next one. Null is fine.
void talea_read_end(struct talea_reading *reading);

// Records a number in the series of some label values, which are in the order of the family's
// labels. A new series is created; if there is no room for it, the family's overflow series
// counts, which is no error. If the call returns an error, nothing is recorded and no series is
// created.
//
// `operation` is a talea_operation. A kind of metric has these:
//
// | kind | operations | numbers |
// |---|---|---|
// | counter | add | whole, not negative |
// | float counter | add | finite, not negative |
// | gauge | add, set | any |
// | integer gauge | add, set | whole, from -2^63 to 2^63 - 1 |
// | up-down counter | add | whole, from -2^63 to 2^63 - 1 |
// | histogram, summary | observe | see talea_operation |
//
// TALEA_STATUS_NULL, _WRONG_LENGTH, _NOT_UTF8, _WRONG_LABELS, _WRONG_KIND, _WRONG_VALUE;
// _WRONG_OPTION of an operation or a kind of number that this library does not know.
talea_status talea_record(const struct talea_family *family,
                          const struct talea_text *values,
                          size_t value_count,
                          uint32_t operation,
                          struct talea_number number);

// Records a number in a kept series, as talea_record does.
//
// TALEA_STATUS_NULL, _WRONG_KIND, _WRONG_VALUE, _WRONG_OPTION.
talea_status talea_series_record(const struct talea_series *series,
                                 uint32_t operation,
                                 struct talea_number number);

// Records an observation at another time, in milliseconds since 1970, for tests of windows: in a
// family with TALEA_FAMILY_SAMPLED; others answer TALEA_STATUS_WRONG_KIND.
//
// Other statuses as of talea_record.
talea_status talea_record_at(const struct talea_family *family,
                             const struct talea_text *values,
                             size_t value_count,
                             uint32_t operation,
                             struct talea_number number,
                             uint64_t unix_millis);

// Registers a family, or finds the one that is registered alike: the same options give the
// same pointer. Keep it for as long as the process lives. Children made by fork use it too.
//
// TALEA_STATUS_CANNOT_REGISTER with a message if the name, a label or the buckets cannot be
// used, or the name has another definition (the message says in what they differ);
// TALEA_STATUS_NO_ROOM if the region is full; or TALEA_STATUS_NULL, _WRONG_SIZE, _WRONG_LENGTH,
// _WRONG_OPTION, _NOT_UTF8.
talea_status talea_register(const struct talea_registry *registry,
                            const struct talea_family_options *options,
                            const struct talea_family **family,
                            char *message,
                            size_t message_len);

// Resets the family of a name to 0, or all families if the name is empty, for all processes:
// series with labels are removed, and kept ones count from 0. Things in flight, and values that
// each process set for itself, stay. The name is as samples have it (a counter's with `_total`).
//
// TALEA_STATUS_NULL, _WRONG_LENGTH, _NOT_UTF8, _NO_ROOM.
talea_status talea_wipe(const struct talea_registry *registry, struct talea_text name);

// Ends the family of a name, or all families if the name is empty, for all processes: scrapes no
// longer show it, and its updates are discarded until a process registers it again with the same
// options. The name is as samples have it (a counter's with `_total`). `ended`, which may be null,
// receives the number of families that were ended.
//
// TALEA_STATUS_NULL, _WRONG_LENGTH, _NOT_UTF8.
talea_status talea_unregister(const struct talea_registry *registry,
                              struct talea_text name,
                              size_t *ended);

// Returns the Content-Type of a page for an Accept header (which may be empty: text):
// `written` is its length, and it ends with a zero that is not among that. 256 bytes are
// enough.
//
// TALEA_STATUS_NULL, _WRONG_LENGTH, _TOO_SHORT.
talea_status talea_content_type(struct talea_text accept,
                                char *buffer,
                                size_t buffer_len,
                                size_t *written);

// Takes a snapshot of all values, to be rendered for an Accept header (which may be empty:
// text) by talea_render_next. End it by talea_render_end.
//
// Its memory is that of the values, not of the text, and a piece.
//
// TALEA_STATUS_NULL, _WRONG_LENGTH.
talea_status talea_render_begin(const struct talea_registry *registry,
                                struct talea_text accept,
                                struct talea_rendering **rendering);

// Renders the next piece: about 64 KiB, more where a single series is longer. It stays until
// the next call; its length is 0 when all is rendered.
//
// TALEA_STATUS_NULL.
talea_status talea_render_next(struct talea_rendering *rendering, struct talea_text *piece);

// Ends a scrape, at any time. Its memory stays for the registry's next one: that of a snapshot.
// Null is fine.
void talea_render_end(struct talea_rendering *rendering);

// Renders the page in one call: passes one piece after the other to `write`, and stops if `write`
// returns anything but 0. `write` must return: no longjmp and no exception may leave it. If the host
// cannot guarantee that, use talea_render_begin.
//
// TALEA_STATUS_NULL, _WRONG_LENGTH, _STOPPED.
talea_status talea_render(const struct talea_registry *registry,
                          struct talea_text accept,
                          talea_write write,
                          void *context);

// A status in words, ending with a zero; it stays as long as the process. Of a number that is
// no status, text that says so.
const char *talea_status_text(int32_t status);

// The text before the first zero; empty for null. It is not copied.
struct talea_text talea_text_of(const char *zero_terminated);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

// Makes a number of a double.
static inline talea_number talea_double(double value) {
    talea_number number = {TALEA_NUMBER_KIND_DOUBLE, 0};
    memcpy(&number.bits, &value, sizeof value);
    return number;
}

// Makes a number of a whole number that is not negative.
static inline talea_number talea_unsigned(uint64_t value) {
    talea_number number = {TALEA_NUMBER_KIND_UNSIGNED, value};
    return number;
}

// Makes a number of a whole number.
static inline talea_number talea_signed(int64_t value) {
    talea_number number = {TALEA_NUMBER_KIND_SIGNED, (uint64_t)value};
    return number;
}

// A number as a double: whole numbers beyond 2^53 are rounded.
static inline double talea_as_double(talea_number number) {
    double value;
    if (number.kind == TALEA_NUMBER_KIND_UNSIGNED)
        return (double)number.bits;
    if (number.kind == TALEA_NUMBER_KIND_SIGNED)
        return (double)(int64_t)number.bits;
    memcpy(&value, &number.bits, sizeof value);
    return value;
}

#endif  // TALEA_H
