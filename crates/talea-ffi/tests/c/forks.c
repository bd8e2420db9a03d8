// A child made by fork uses every handle without any preparation, whatever other threads do during
// the fork. Its counts survive when it is killed.

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static const talea_registry *registry;
static const talea_text LABEL = {"n", 1};
static volatile int done;

// Takes all locks, over and over.
static void *registers_and_reads(void *argument) {
    (void)argument;
    for (int n = 0; !done; n++) {
        char name[32];
        sprintf(name, "family_%d", n % 50);
        const talea_family *family = family_of(registry, TALEA_KIND_COUNTER, name, &LABEL, 1);
        talea_text value = {name, strlen(name)};
        const talea_series *kept;
        OK(talea_series_keep(family, &value, 1, &kept));
        OK(talea_series_record(kept, ADD, talea_unsigned(1)));
        total_of(registry, "", NULL);
    }
    return NULL;
}

static void ends_well(pid_t child) {
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    if (status != 0)
        fprintf(stderr, "the child ended with %d\n", status);
    CHECK(status == 0);
}

static void threads_do_not_block_a_child(void) {
    pthread_t threads[3];
    for (int n = 0; n < 3; n++)
        CHECK(pthread_create(&threads[n], NULL, registers_and_reads, NULL) == 0);
    const talea_family *births = family_of(registry, TALEA_KIND_COUNTER, "births", &LABEL, 1);
    for (int n = 0; n < 300; n++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            // A child that waits for ever is killed, and its parent fails.
            alarm(20);
            char name[32];
            talea_text value = {name, (size_t)sprintf(name, "child_%d", n % 10)};
            OK(talea_record(births, &value, 1, ADD, talea_unsigned(1)));
            const talea_family *own = family_of(registry, TALEA_KIND_COUNTER, name, NULL, 0);
            const talea_series *kept;
            OK(talea_series_keep(births, &value, 1, &kept));
            OK(talea_series_record(kept, ADD, talea_unsigned(1)));
            OK(talea_record(own, NULL, 0, ADD, talea_unsigned(1)));
            struct page page = rendered(registry, "");
            CHECK(page.len > 100);
            _exit(0);
        }
        ends_well(child);
    }
    done = 1;
    for (int n = 0; n < 3; n++)
        pthread_join(threads[n], NULL);
    size_t count;
    CHECK(total_of(registry, "births_total", &count) == 600 && count == 10);
    CHECK(total_of(registry, "child_7_total", NULL) == 30);
}

static void a_killed_child_loses_nothing(void) {
    const talea_family *jobs = family_of(registry, TALEA_KIND_COUNTER, "jobs", &LABEL, 1);
    const talea_family *open = family_of(registry, TALEA_KIND_UP_DOWN_COUNTER, "open", NULL, 0);
    talea_family_options options = options_of(TALEA_KIND_GAUGE, "longest", NULL, 0);
    options.combining = TALEA_COMBINING_MAX;
    const talea_family *longest = registered(registry, &options);
    talea_text mail = {"mail", 4};
    const talea_series *kept;
    OK(talea_series_keep(jobs, &mail, 1, &kept));
    OK(talea_record(open, NULL, 0, ADD, talea_unsigned(1)));
    OK(talea_record(longest, NULL, 0, SET, talea_double(2)));
    int ready[2];
    CHECK(pipe(ready) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        for (int n = 0; n < 100000; n++)
            OK(talea_series_record(kept, ADD, talea_unsigned(1)));
        OK(talea_record(jobs, &mail, 1, ADD, talea_unsigned(23)));
        OK(talea_record(open, NULL, 0, ADD, talea_unsigned(5)));
        OK(talea_record(longest, NULL, 0, SET, talea_double(9)));
        CHECK(write(ready[1], "x", 1) == 1);
        for (;;)
            pause();
    }
    char byte;
    CHECK(read(ready[0], &byte, 1) == 1);
    CHECK(shows(registry, "open 6") && shows(registry, "longest 9"));
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
    CHECK(shows(registry, "jobs_total{n=\"mail\"} 100023"));
    // Its things in flight leave with it.
    CHECK(shows(registry, "open 1") && shows(registry, "longest 2"));
}

// A summary has a thread that keeps its window. It gets no signals of the host, and a child has a
// thread of its own.
static volatile sig_atomic_t elsewhere;
static pthread_t host;

static void on_signal(int signal) {
    (void)signal;
    elsewhere |= !pthread_equal(pthread_self(), host);
}

static void summaries_do_not_disturb(void) {
    host = pthread_self();
    talea_family_options options = options_of(TALEA_KIND_SUMMARY, "recent", NULL, 0);
    options.window_seconds = 60;
    const talea_family *recent = registered(registry, &options);
    OK(talea_record(recent, NULL, 0, OBSERVE, talea_double(1)));
    signal(SIGUSR1, on_signal);
    sigset_t blocked, before;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    CHECK(pthread_sigmask(SIG_BLOCK, &blocked, &before) == 0);
    // Any thread that lets it in would get it.
    CHECK(kill(getpid(), SIGUSR1) == 0);
    usleep(20000);
    CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    CHECK(!elsewhere);
    sigset_t now;
    CHECK(pthread_sigmask(SIG_SETMASK, NULL, &now) == 0 && !sigismember(&now, SIGUSR2));
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        OK(talea_record(recent, NULL, 0, OBSERVE, talea_double(1)));
        CHECK(registered(registry, &options) == recent);
        CHECK(shows(registry, "recent_count 2"));
        _exit(0);
    }
    ends_well(child);
}

// Calls all kinds of functions, and forks the first time.
static void calls_and_forks(talea_text name, int *calls) {
    const talea_family *seen = family_of(registry, TALEA_KIND_COUNTER, "seen", &LABEL, 1);
    OK(talea_record(seen, &name, 1, ADD, talea_unsigned(1)));
    total_of(registry, "seen_total", NULL);
    if (*calls == 0) {
        pid_t child = fork();
        if (child == 0) {
            alarm(20);
            OK(talea_wipe(registry, talea_text_of("seen_total")));
            _exit(0);
        }
        ends_well(child);
    }
    ++*calls;
}

static void a_reader_may_call_and_fork_meanwhile(void) {
    int calls = 0;
    talea_reading *reading;
    talea_rendering *rendering;
    const talea_family_view *family;
    OK(talea_render_begin(registry, NONE, &rendering));
    OK(talea_read_begin(registry, NONE, &reading));
    do {
        OK(talea_read_next(reading, &family));
        if (family != NULL)
            calls_and_forks(family->name, &calls);
    } while (family != NULL);
    talea_read_end(reading);
    talea_render_end(rendering);
    CHECK(calls > 50);
    // The first was wiped.
    CHECK(total_of(registry, "seen_total", NULL) == calls - 1);
}

int main(void) {
    registry = opened(NULL, 16 << 20);
    threads_do_not_block_a_child();
    a_killed_child_loses_nothing();
    summaries_do_not_disturb();
    a_reader_may_call_and_fork_meanwhile();
    return 0;
}
