// Talea: metrics in shared memory. The C ABI, for bindings of other languages; docs/reference/bindings.md
// is its guide.
//
// Rules for every function:
// - A pointer points to an object of its type, which stays until the call returns, and which no
//   other code writes to meanwhile. Texts and arrays of the length 0 may be null.
// - Registries, families and series are made by the library and stay until the process ends. Any
//   number of threads, and children made by fork, may use them at once. They are never freed.
// - A null pointer, an impossible length and text that is not UTF-8 each have a status. The call
//   then writes nothing through the other pointers.
// - A `message` is a buffer of `message_len` bytes that receives the reason of a failure, or the
//   empty text, with a zero at its end; a longer reason is cut. It may be null.
//
// Written by cbindgen; run TALEA_WRITE_HEADER=1 cargo test -p talea-ffi --test header.

#ifndef TALEA_H
#define TALEA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// The version of the ABI that this header describes. It changes if a program that was compiled
// with an older header could break.
#define TALEA_ABI_VERSION 3

// The metric and its labels may have any names without quotes, backslashes and control
// characters that do not begin with `_`.
#define TALEA_FAMILY_UTF8_NAMES 1

// `schema` of talea_family_options is used.
#define TALEA_FAMILY_SCHEMA 2

// Each CPU has a copy of each value: for counters and histograms of few, hot series. Families
// without labels have it by default.
#define TALEA_FAMILY_STRIPED 4

// Series never expire.
#define TALEA_FAMILY_PERMANENT 8

// `quantiles` of talea_family_options is used even if it is empty.
#define TALEA_FAMILY_QUANTILES 16

// A summary without a unit keeps its recent observations in the region, 0.5 to 13.5 KiB a series.
// Any reader then sees the same quantiles, however young it is: for processes that live for a few
// requests only. Quantiles of a window with at most 128 observations are exact.
#define TALEA_FAMILY_SAMPLED 32

// Names are accepted as other libraries accept them: also gauges that end in `_total` or `_info`,
// names that end in `_count`, `_sum`, `_bucket` or `_created`, names that begin with one `_`, and
// labels `le` and `quantile` unless it is a histogram or a summary. For metrics that you do not
// name yourself.
#define TALEA_FAMILY_LENIENT_NAMES 64

// No copy for each CPU, even for a family without labels. Floats that were recorded before a wipe
// then take no digits from those that are recorded after it.
#define TALEA_FAMILY_UNSTRIPED 128

// This process may register other definitions of the name too, as one that runs several versions of a
// program does. Each counts by itself.
#define TALEA_FAMILY_ALLOW_OTHERS 256

// The `group` of talea_open_options may read a new file.
#define TALEA_OPEN_READ_BY_GROUP 1

// The status of a call. More may be added: treat an unknown status as an error.
enum talea_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Success.
  TALEA_STATUS_OK = 0,
  // A pointer that must not be null is null.
  TALEA_STATUS_NULL = 1,
  // The `size` of a struct is unknown to this library, or the struct sets a field that is.
  TALEA_STATUS_WRONG_SIZE = 2,
  // A length is more than memory can hold.
  TALEA_STATUS_WRONG_LENGTH = 3,
  // A text is not UTF-8.
  TALEA_STATUS_NOT_UTF8 = 4,
  // The number of label values is not that of the family's labels.
  TALEA_STATUS_WRONG_LABELS = 5,
  // Metrics of this kind have no such operation.
  TALEA_STATUS_WRONG_KIND = 6,
  // A metric of this kind cannot take this number: a counter no negative one, a duration no
  // NaN.
  TALEA_STATUS_WRONG_VALUE = 7,
  // An option has an unknown value, or one that contradicts another option.
  TALEA_STATUS_WRONG_OPTION = 8,
  // The region cannot be opened; the message says why.
  TALEA_STATUS_CANNOT_OPEN = 9,
  // The family cannot be registered; the message says why.
  TALEA_STATUS_CANNOT_REGISTER = 10,
  // The buffer is too short; nothing was written to it.
  TALEA_STATUS_TOO_SHORT = 11,
  // The region has no room: for another family, or for the note of the present values that a
  // wipe needs; the values are not reset then.
  TALEA_STATUS_NO_ROOM = 12,
  // An error in the library itself. The call did nothing, or a part; other calls still work.
  TALEA_STATUS_PANIC = 13,
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
  // The sum of the values that the living processes set, one each.
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

// The effect of a number on a metric.
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

// A part of a region that one thread alone writes, until it returns it or the process ends.
typedef struct talea_plane talea_plane;

// A snapshot that is read family by family, by one thread at a time.
typedef struct talea_reading talea_reading;

// A registry: a region of shared memory, and what was registered in it. It stays until the
// process ends, so there is nothing to free. Any number of threads may use one.
typedef struct talea_registry talea_registry;

// A scrape that is under way, used by one thread at a time.
typedef struct talea_rendering talea_rendering;

// A series of a family: one combination of label values, kept. It stays until it is released as often
// as it was kept, or the process ends.
typedef struct talea_series talea_series;

// A text: `len` bytes of UTF-8, with or without a zero after them. Null with the length 0 is the
// empty text.
typedef struct talea_text {
  // Where it begins.
  const char *data;
  // Its bytes.
  size_t len;
} talea_text;

// How a region is opened. Zeros are defaults; set `size` by `sizeof`.
typedef struct talea_open_options {
  // The size of this struct.
  size_t size;
  // A file on tmpfs, such as /dev/shm/shop.talea; it is created if it is missing. Empty: memory
  // of this process, shared with children made by fork.
  struct talea_text path;
  // The most bytes that a new region may use, a multiple of 4,096 from 512 KiB to 1 TiB; pages are
  // allocated as they are needed. 0: 64 MiB, or, if that is less, an eighth of the cgroup's memory
  // limit, or the limit of ulimit -f.
  uint64_t len;
  // Series that a new region can hold, at most one for each 64 bytes. 0: one for each 512 bytes.
  uint64_t series;
  // TALEA_OPEN_READ_BY_GROUP, or 0.
  uint32_t flags;
  // The number of the group that may read a new file (mode 0640). Without the flag it is 0.
  uint32_t group;
  // Planes that a new region can lend (talea_plane_borrow), at most 256. 0: none.
  uint64_t lent_planes;
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
  // Their number.
  size_t label_count;
  // Its samples.
  const struct talea_sample *samples;
  // Their number.
  size_t sample_count;
  // Whether it keeps samples (TALEA_FAMILY_SAMPLED) and so has the next two.
  bool is_sampled;
  // The number of observations in the window of its quantiles.
  uint64_t window_count;
  // Their sum.
  double window_sum;
} talea_series_view;

// A family with its series, in the order of their creation.
typedef struct talea_family_view {
  // The name, as samples have it (a counter's with `_total`).
  struct talea_text name;
  // counter, gauge, histogram, summary, info or stateset.
  struct talea_text kind;
  // The help.
  struct talea_text help;
  // How often label values counted in its overflow series, because they were new and there was
  // no room for them; over all processes. Scrapes show it as talea_series_dropped_total.
  uint64_t dropped;
  // Its series.
  const struct talea_series_view *series;
  // Their number; perhaps 0.
  size_t series_count;
} talea_family_view;

// Options to register a family with. Zero means the default, except in `size`, `kind`, `name` and
// `help`; set `size` by `sizeof`. An option that metrics of the kind do not have is an error, and so
// are two that contradict each other, such as TALEA_FAMILY_PERMANENT with an expiry.
typedef struct talea_family_options {
  // The size of this struct.
  size_t size;
  // A talea_kind.
  uint32_t kind;
  // A talea_unit, of histograms and summaries.
  uint32_t unit;
  // The name. A missing suffix is added: `_total` of a counter, the unit of a histogram or a
  // summary.
  struct talea_text name;
  // The help, in a sentence. It must not be empty.
  struct talea_text help;
  // The names of the labels; null if there are none.
  const struct talea_text *label_names;
  // Their number.
  size_t label_count;
  // TALEA_FAMILY_ flags.
  uint32_t flags;
  // A talea_combining, of gauges.
  uint32_t combining;
  // The most series of the family; further ones count in its overflow series. 0: 2,000. A family
  // without labels has one series, whatever the limit is.
  uint64_t limit;
  // Seconds without a look-up after which a series expires, in whole minutes. 0: an hour.
  uint64_t expires_after_seconds;
  // Thresholds of a histogram in the shown unit, ascending; null for those of its unit.
  const double *buckets;
  // Their number.
  size_t bucket_count;
  // The quantiles that a summary shows, ascending, from 0 to 1; null for 0.5, 0.9 and 0.99. A
  // histogram with quantiles shows them in a summary of its own.
  const double *quantiles;
  // Their number.
  size_t quantile_count;
  // The window of the quantiles of a histogram or a summary, in seconds. 0: 600.
  uint64_t window_seconds;
  // A talea_buckets, of histograms.
  uint32_t bucketing;
  // The schema of native buckets, -4 to 8, of histograms and summaries. Without
  // TALEA_FAMILY_SCHEMA it is 3, and this is 0.
  int32_t schema;
  // The most native buckets that a histogram or a summary uses for a series. 0: 160.
  uint32_t max_buckets;
  // Must be 0.
  uint32_t reserved;
  // If there are too many native buckets, observations up to this far from 0 may count as 0.
  double widest_zero;
} talea_family_options;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The version of the library's ABI. If it is not TALEA_ABI_VERSION, the header belongs to another
// library: call nothing else.
uint32_t talea_abi_version(void);

// Finds or creates the series of some label values, in the order of the family's labels, and
// keeps it: recording in it costs no look-up. The same values give the same pointer, unless this process
// removed the series meanwhile.
//
// A kept series stays in memory, and does not expire, until talea_series_release was called for it as
// often as this function, or the process ends. If there is no room for a new one, it is the family's
// overflow series; if the series exists and the region has no room even for the 48 bytes that note that
// it is kept, its updates are discarded. So keep series early.
//
// TALEA_STATUS_NULL, _WRONG_LENGTH, _NOT_UTF8, _WRONG_LABELS.
talea_status talea_series_keep(const struct talea_family *family,
                               const struct talea_text *values,
                               size_t value_count,
                               const struct talea_series **series);

// Lets go of a series: call it once for each call of talea_series_keep that returned the pointer. After
// the last one the pointer and the series' words must not be used; the series stays with its values until
// it expires or is removed. Null is fine.
void talea_series_release(const struct talea_series *series);

// Writes the addresses of up to `capacity` words of a kept series, and their number to `count`. Code
// in any language may add to each of them without a call, by its own atomic instruction on 64 bits
// (relaxed), beside all other recording; never by a plain one. The words are aligned, and valid until
// the series is released: they count from 0 after it is wiped, and what is added after this process
// removed it, or while the family has ended, is discarded.
//
// | kind | a word holds | update |
// |---|---|---|
// | counter | a whole number | add |
// | float counter | the bits of a double | add, by compare and swap |
// | integer gauge | a whole number, in two's complement | add, or store |
// | gauge | the bits of a double | add, by compare and swap, or store |
// | up-down counter | a whole number, in two's complement | add |
//
// A counter without dynamic labels has a word for each CPU, and its value is the sum: word n is for
// threads that run on CPU n, so that they do not wait for each other; any other is as right. So give the
// capacity that is the number of CPUs, or 1 if few threads add. Others have one word, or a few of
// which any may be used. The word of an up-down counter, or of a gauge that is combined over
// processes, belongs to this process: a child made by fork has to ask for its own.
//
// TALEA_STATUS_NULL; _WRONG_KIND of histograms and summaries, and of gauges that a process may leave
// without a value.
talea_status talea_series_words(const struct talea_series *series,
                                uint64_t **words,
                                size_t capacity,
                                size_t *count);

// Removes a series with all its values; the next update creates it anew. A series that another living
// process keeps is left out of scrapes until its next update, and counts from 0. What this process
// records in a series that it kept before is discarded: keep it anew. `removed`, which may be null,
// receives whether the series existed.
//
// TALEA_STATUS_NULL, _WRONG_LENGTH, _NOT_UTF8, _WRONG_LABELS.
talea_status talea_remove(const struct talea_family *family,
                          const struct talea_text *values,
                          size_t value_count,
                          bool *removed);

// Whether any process unregistered the family, so that its updates are discarded until it is
// registered again with the same options. True for null. Cost: a load.
bool talea_is_ended(const struct talea_family *family);

// Opens a region: creates it, or attaches to an existing file with the limits that it was created
// with. A file that cannot be used is moved aside, or a sibling is opened; a line on standard error
// says so.
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
// TALEA_REGION_GROUP names; if it is unset or empty, memory of this process.
//
// TALEA_STATUS_CANNOT_OPEN with a message, or TALEA_STATUS_NULL.
talea_status talea_open_from_environment(const struct talea_registry **registry,
                                         char *message,
                                         size_t message_len);

// Borrows a plane of a registry's region for the calling thread, so that it adds to counters by plain loads and
// stores. What it adds stays when it returns the plane, ends or is killed; the next borrower goes on from there.
//
// TALEA_STATUS_NULL; _NO_ROOM if all planes are borrowed, or the region was made without any (`lent_planes` of
// talea_open_options): then record by calls.
talea_status talea_plane_borrow(const struct talea_registry *registry,
                                struct talea_plane **plane);

// Returns a plane. Its words must not be written any more. A child made by fork may call this for a plane of
// its parent, which keeps it; the child must write to none of its words. Null is fine.
void talea_plane_return(struct talea_plane *plane);

// Writes the address of a kept series' word in a plane. The thread that borrowed the plane, and no other, adds
// to it by a plain load and a store of 64 aligned bits: a whole number for a counter, a double for a float counter.
// The word does not hold the value, but what was added in this plane. It is valid until the series is released
// or the plane returned.
//
// A double does not count by one from 2^53 on, so record by calls then.
//
// TALEA_STATUS_NULL; _WRONG_KIND of metrics that are no counters, and of series without copies: a counter has them
// without labels or with TALEA_FAMILY_STRIPED, as long as the region has room for them.
talea_status talea_plane_word(const struct talea_plane *plane,
                              const struct talea_series *series,
                              uint64_t **word);

// Takes a snapshot of the family of a name, or of all families if the name is empty;
// talea_read_next reads it. The name is as samples have it (a counter's with `_total`). End the
// reading by talea_read_end.
//
// TALEA_STATUS_NULL, _WRONG_LENGTH, _NOT_UTF8.
talea_status talea_read_begin(const struct talea_registry *registry,
                              struct talea_text name,
                              struct talea_reading **reading);

// Ends the windows of families that keep samples at another time, in milliseconds since 1970: for
// tests that choose the time. Later observations are not left out.
//
// TALEA_STATUS_NULL.
talea_status talea_reading_at(struct talea_reading *reading, uint64_t unix_millis);

// Reads the next family, in the order of names; null after the last. All that it points to stays
// until the next call.
//
// TALEA_STATUS_NULL.
talea_status talea_read_next(struct talea_reading *reading,
                             const struct talea_family_view **family);

// Ends a reading, at any time. The memory of one of all families stays for the registry's next
// one. Null is fine.
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

// Adds a whole number that is not negative to a kept series, as talea_series_record does, and with its
// statuses. Its arguments are plain numbers, which any language can pass.
talea_status talea_series_add_u64(const struct talea_series *series,
                                  uint64_t number);

// Adds a whole number to a kept series, as talea_series_record does, and with its
// statuses. Its arguments are plain numbers, which any language can pass.
talea_status talea_series_add_i64(const struct talea_series *series, int64_t number);

// Adds a number to a kept series, as talea_series_record does, and with its
// statuses. Its arguments are plain numbers, which any language can pass.
talea_status talea_series_add_f64(const struct talea_series *series, double number);

// Sets a kept series of a gauge or an integer gauge to a whole number, as talea_series_record does, and with its
// statuses. Its arguments are plain numbers, which any language can pass.
talea_status talea_series_set_i64(const struct talea_series *series,
                                  int64_t number);

// Sets a kept series of a gauge or an integer gauge, as talea_series_record does, and with its
// statuses. Its arguments are plain numbers, which any language can pass.
talea_status talea_series_set_f64(const struct talea_series *series, double number);

// Records an observation, a whole number, in a kept series of a histogram or summary, as talea_series_record does, and with its
// statuses. Its arguments are plain numbers, which any language can pass.
talea_status talea_series_observe_u64(const struct talea_series *series,
                                      uint64_t number);

// Records an observation in a kept series of a histogram or summary, as talea_series_record does, and with its
// statuses. Its arguments are plain numbers, which any language can pass.
talea_status talea_series_observe_f64(const struct talea_series *series,
                                      double number);

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

// Writes the Content-Type of a page for an Accept header (if it is empty: text), with a zero after
// it. `written` receives its length without the zero. 256 bytes are enough.
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

// Renders the next piece: about 64 KiB, more if a single series is longer. It stays until the next
// call; its length is 0 after the last piece.
//
// TALEA_STATUS_NULL.
talea_status talea_render_next(struct talea_rendering *rendering, struct talea_text *piece);

// Ends a scrape, at any time. Its memory stays for the registry's next one: that of a snapshot.
// Null is fine.
void talea_render_end(struct talea_rendering *rendering);

// The text of a status, with a zero at its end; it stays as long as the process. An unknown
// number has a text that says so.
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
