/* PHP in threads: each of four answers requests, which record in the same families and register new
 * ones. Given a php.ini that brings the extension, it says what was lost; its status is 0 where
 * nothing was. */
#include <sapi/embed/php_embed.h>

#include <pthread.h>

enum { THREADS = 4, REQUESTS = 250, COUNTS = 100 };

static const char *const REQUEST =
    "$registry = new Talea\\Registry();"
    "for ($i = 0; $i < $counts; $i++) {"
    "    $registry->getOrRegisterCounter('', 'calls', 'Calls.')->inc();"
    "    $registry->getOrRegisterCounter('', 'ids', 'By thread.', ['thread'])->inc([$thread]);"
    "    $registry->getOrRegisterHistogram('', 'took', 'Took.', ['thread'])->observe($i, [$thread]);"
    "    $registry->getOrRegisterSummary('', 'lately', 'Lately.')->observe($i);"
    "}"
    "$registry->getOrRegisterGauge('', \"shared_$request\", 'By all, at once.')->inc();"
    "$registry->getOrRegisterCounter('', 'requests', 'Requests.', ['id'])->inc([\"$thread-$request\"]);"
    /* Ended while the others count in it. */
    "$registry->getOrRegisterCounter('', 'ended', 'Ended.')->inc();"
    "if ($request % 10 === 0) { $registry->unregister('ended_total'); }"
    /* A child of a thread, while others are in the midst of anything. */
    "if ($request % 25 === 7) {"
    "    $child = pcntl_fork();"
    "    if ($child === 0) {"
    "        (new Talea\\Registry())->getOrRegisterCounter('', 'forked', 'Forked.')->inc();"
    "        posix_kill(posix_getpid(), SIGKILL);"
    "    }"
    "    pcntl_waitpid($child, $status);"
    "}"
    /* Refusals, freed blocks of a page, and a request that ends halfway. */
    "try { (new Talea\\Registry())->registerCounter('', 'calls', 'Calls.', ['other']); }"
    "catch (Talea\\Exception $e) { $registry->getOrRegisterCounter('', 'refused', 'Refused.')->inc(); }"
    "if ($request % 50 === 0) { $registry->render(); $registry->families(); exit; }";

static const char *const CHECK =
    "$page = (new Talea\\Registry())->render();"
    "$lines = array_flip(explode(\"\\n\", $page));"
    "$expected = ["
    "    'calls_total ' . $threads * $requests * $counts,"
    "    'lately_count ' . $threads * $requests * $counts,"
    "    'forked_total ' . $threads * $requests / 25,"
    "    'refused_total ' . $threads * $requests,"
    "];"
    "for ($thread = 0; $thread < $threads; $thread++) {"
    "    $expected[] = \"ids_total{thread=\\\"$thread\\\"} \" . $requests * $counts;"
    "    $expected[] = \"took_count{thread=\\\"$thread\\\"} \" . $requests * $counts;"
    "    for ($i = 0; $i < $requests; $i++) {"
    "        $expected[] = \"requests_total{id=\\\"$thread-$i\\\"} 1\";"
    "    }"
    "}"
    "for ($i = 0; $i < $requests; $i++) { $expected[] = \"shared_$i $threads\"; }"
    "$lost = array_filter($expected, fn ($line) => !isset($lines[$line]));"
    "echo count($expected), ' numbers of ', $threads * $requests, \" requests in $threads threads, \","
    "    count($lost), \" of them wrong\\n\";"
    "if ($lost) { echo $page, \"not there:\\n\", implode(\"\\n\", $lost), \"\\n\"; exit(1); }";

static pthread_barrier_t start;

static void run(const char *code, int thread, int request) {
    char *whole;
    zend_spprintf(&whole, 0, "$threads = %d; $requests = %d; $counts = %d; $thread = %d; "
        "$request = %d; %s", THREADS, REQUESTS, COUNTS, thread, request, code);
    zend_first_try {
        zend_eval_string_ex(whole, NULL, "threads.c", true);
    } zend_end_try();
    efree(whole);
}

static void *answer(void *number) {
    ts_resource(0);
    pthread_barrier_wait(&start);
    for (int request = 0; request < REQUESTS; request++) {
        if (php_request_startup() == FAILURE) {
            abort();
        }
        run(REQUEST, (int) (intptr_t) number, request);
        php_request_shutdown(NULL);
    }
    ts_free_thread();
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: threads PHP.INI\n");
        return 2;
    }
    php_embed_module.php_ini_path_override = argv[1];
    if (php_embed_init(argc, argv) == FAILURE) {
        return 2;
    }
    pthread_t threads[THREADS];
    pthread_barrier_init(&start, NULL, THREADS);
    for (intptr_t number = 0; number < THREADS; number++) {
        pthread_create(&threads[number], NULL, answer, (void *) number);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    run(CHECK, 0, 0);
    int status = EG(exit_status);
    php_embed_shutdown();
    return status;
}
