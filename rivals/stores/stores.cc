// LevelDB and RocksDB at the work that `granary study cache` gives Granary. Prints a line of JSON.
//   stores load leveldb|rocksdb DIR KEYS VALUE_BYTES [--order random|keys] [--values half|random] [--block-size N]
//               [--compression none|snappy]
//   stores read leveldb|rocksdb DIR KEYS VALUE_BYTES --workload NAME --cache BYTES [--row-cache BYTES] --operations N
//               [--warm-up N|pass] [--windows N] [--seed N] [--values half|random] [--file-reads direct|buffered|mmap]
//               [--cold yes|no|fill] [--at-once N] [--seconds N]
// A workload is one of workload.hh, or `phases`: zipf, neighbours and scan after each other, N operations each.
// --seconds: the warm-up ends after so long, and so does each window, however few operations it has done by then.
// --warm-up: operations of the workload before those that are measured, or a pass: each key that it may read, once, in
// scattered order. --cold drops the store's files from the page cache first (yes), or reads all of them into it (fill).
// --at-once: keys of each call; times are of a key then, the call's divided by their number. Wrong or missing values end
// it with an error.
#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cinttypes>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>
#include <vector>

#include "store.hh"
#include "workload.hh"

namespace {

using Clock = std::chrono::steady_clock;
constexpr int warm_up_threads = 8;

struct Arguments {
    std::string command, engine;
    Settings settings;
    uint64_t keys = 0, value_bytes = 0, operations = 0, warm_up = 0, windows = 1, seed = 1, at_once = 1;
    uint64_t seconds = 1'000'000;  // For each window.
    std::string workload, order = "random", cold = "no";
    bool compressible = true, warm_up_by_pass = false;
};

// All of the text, or an error: no size is cut silently.
uint64_t number(const std::string &name, const std::string &text) {
    size_t used = 0;
    uint64_t value = 0;
    try {
        value = std::stoull(text, &used);
    } catch (const std::exception &) {
        used = 0;
    }
    if (used == 0 || used != text.size() || text[0] == '-') throw std::runtime_error(name + ": " + text + " is no number of 64 bits");
    return value;
}

std::string one_of(const std::string &name, const std::string &text, std::initializer_list<const char *> choices) {
    for (const char *choice : choices)
        if (text == choice) return text;
    throw std::runtime_error(name + ": not " + text);
}

Arguments parse(int count, char **words) {
    if (count < 6) throw std::runtime_error("usage: stores load|read leveldb|rocksdb DIR KEYS VALUE_BYTES [--NAME VALUE]...");
    Arguments a;
    a.command = one_of("command", words[1], {"load", "read"});
    a.engine = one_of("engine", words[2], {"leveldb", "rocksdb"});
    a.settings.folder = words[3];
    a.keys = number("KEYS", words[4]);
    a.value_bytes = number("VALUE_BYTES", words[5]);
    if (a.keys == 0 || a.keys > 10'000'000'000'000'000u) throw std::runtime_error("KEYS: from 1 to 10^16");
    a.settings.load = a.command == "load";
    a.settings.file_reads = a.engine == "rocksdb" ? "direct" : "mmap";
    if ((count - 6) % 2 != 0) throw std::runtime_error(std::string(words[count - 1]) + " has no value");
    for (int i = 6; i < count; i += 2) {
        const std::string name = words[i], value = words[i + 1];
        if (name == "--order") a.order = one_of(name, value, {"random", "keys"});
        else if (name == "--values") a.compressible = one_of(name, value, {"half", "random"}) == "half";
        else if (name == "--compression") a.settings.compress = one_of(name, value, {"none", "snappy"}) == "snappy";
        else if (name == "--block-size") a.settings.block_bytes = number(name, value);
        else if (name == "--workload") a.workload = value;
        else if (name == "--cache") a.settings.cache_bytes = number(name, value);
        else if (name == "--row-cache") a.settings.row_cache_bytes = number(name, value);
        else if (name == "--operations") a.operations = number(name, value);
        else if (name == "--warm-up" && value == "pass") a.warm_up_by_pass = true;
        else if (name == "--warm-up") a.warm_up = number(name, value);
        else if (name == "--at-once") a.at_once = std::clamp<uint64_t>(number(name, value), 1, 1000);
        else if (name == "--windows") a.windows = std::max<uint64_t>(number(name, value), 1);
        else if (name == "--seconds") a.seconds = std::min<uint64_t>(number(name, value), 1'000'000);
        else if (name == "--seed") a.seed = number(name, value);
        else if (name == "--file-reads") a.settings.file_reads = one_of(name, value, {"direct", "buffered", "mmap"});
        else if (name == "--cold") a.cold = one_of(name, value, {"yes", "no", "fill"});
        else throw std::runtime_error("no option is called " + name);
    }
    return a;
}

std::unique_ptr<Store> open_store(const Arguments &a) {
    return a.engine == "leveldb" ? open_leveldb(a.settings) : open_rocksdb(a.settings);
}

// A field of a file of /proc/self, such as `VmHWM: 100 kB`; 0: the system does not say.
uint64_t of_process(const char *file, const std::string &name) {
    std::ifstream lines(std::string("/proc/self/") + file);
    for (std::string line; std::getline(lines, line);)
        if (line.compare(0, name.size(), name) == 0) return std::strtoull(line.c_str() + name.size(), nullptr, 10);
    return 0;
}

void drop_page_cache(const std::string &folder) {
    for (const auto &entry : std::filesystem::directory_iterator(folder)) {
        const int file = open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
        if (file < 0) continue;
        fsync(file);
        posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
        close(file);
    }
}

void fill_page_cache(const std::string &folder) {
    std::vector<char> piece(1 << 20);
    for (const auto &entry : std::filesystem::directory_iterator(folder)) {
        const int file = open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
        if (file < 0) continue;
        while (::read(file, piece.data(), piece.size()) > 0) {}
        close(file);
    }
}

void load(const Arguments &a) {
    const auto start = Clock::now();
    auto store = open_store(a);
    const workload::Permutation order(a.keys, workload::load_seed);
    std::string value(a.value_bytes, ' ');
    for (uint64_t i = 0; i < a.keys; i++) {
        const uint64_t key = a.order == "random" ? order(i) : i;
        workload::value_of(key, a.compressible, value);
        store->put(workload::key_of(key), value);
    }
    store->finish();
    store.reset();
    uint64_t bytes = 0;
    for (const auto &entry : std::filesystem::directory_iterator(a.settings.folder))
        if (entry.is_regular_file()) bytes += entry.file_size();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    printf("{\"keys\": %" PRIu64 ", \"disk_bytes\": %" PRIu64 ", \"seconds\": %.3f}\n", a.keys, bytes, seconds);
}

// Reads without being timed, many at a time: only what lies in the caches afterwards counts.
void warm_up(const Arguments &a, Store &store, const std::string &name) {
    const auto deadline = Clock::now() + std::chrono::seconds(a.seconds);
    const uint64_t all = workload::keys_of(name, a.keys), count = a.warm_up_by_pass ? all : a.warm_up;
    std::vector<std::thread> threads;
    std::vector<std::exception_ptr> errors(warm_up_threads);
    for (int t = 0; t < warm_up_threads; t++)
        threads.emplace_back([&, t] {
            try {
                workload::Keys keys(name, a.keys, a.seed + 1000 + t);
                const workload::Permutation pass(all, workload::pass_seed);
                std::string value;
                for (uint64_t i = t; i < count && Clock::now() < deadline; i += warm_up_threads)
                    store.get(workload::key_of(a.warm_up_by_pass ? pass(i) : keys.next()), value);
            } catch (...) {
                errors[t] = std::current_exception();
            }
        });
    for (auto &thread : threads) thread.join();
    for (auto &error : errors)
        if (error) std::rethrow_exception(error);
}

struct Window {
    double us = 0;
    int64_t reads = -1;
    uint64_t bytes = 0;
};

void print_phase(const std::string &name, uint64_t operations, std::vector<uint32_t> &ns, const std::vector<Window> &windows) {
    double us = 0;
    int64_t reads = 0;
    uint64_t bytes = 0;
    for (const Window &window : windows) {
        us += window.us;
        bytes += window.bytes;
        reads = window.reads < 0 || reads < 0 ? -1 : reads + window.reads;
    }
    const auto say = [](int64_t n) { return n < 0 ? std::string("null") : std::to_string(n); };
    printf("{\"name\": \"%s\", \"operations\": %" PRIu64 ", \"mean_us\": %.4f", name.c_str(), operations, us / operations);
    if (!ns.empty()) {
        std::sort(ns.begin(), ns.end());
        const auto at = [&](double part) { return ns[static_cast<size_t>(part * (ns.size() - 1))] / 1000.0; };
        printf(", \"p50_us\": %.3f, \"p99_us\": %.3f", at(0.5), at(0.99));
    }
    printf(", \"hits\": %" PRIu64 ", \"reads\": %s, \"read_bytes\": %" PRIu64 ", \"windows\": [", operations, say(reads).c_str(), bytes);
    for (size_t i = 0; i < windows.size(); i++)
        printf("%s[%.1f, %s, %" PRIu64 "]", i ? ", " : "", windows[i].us, say(windows[i].reads).c_str(), windows[i].bytes);
    printf("]}");
}

void phase(const Arguments &a, Store &store, const std::string &name) {
    workload::Keys keys(name, a.keys, a.seed);
    const bool seeks = name == "seekrandom", sequential = name == "readseq";
    const uint64_t operations = sequential ? std::min(a.operations, a.keys) : a.operations;
    std::vector<uint32_t> ns;
    ns.reserve(sequential ? 0 : operations);
    std::vector<Window> windows;
    std::string value, wanted(a.value_bytes, ' ');
    std::unique_ptr<Cursor> cursor = sequential ? store.cursor() : nullptr;
    uint64_t done = 0;
    for (uint64_t w = 0; w < a.windows; w++) {
        const auto deadline = Clock::now() + std::chrono::seconds(a.seconds);
        const uint64_t end = operations * (w + 1) / a.windows;
        const uint64_t bytes = of_process("io", "read_bytes: ");
        const int64_t reads = store.device_reads().blocks;
        Window window;
        for (; done < end; done++) {
            if (Clock::now() >= deadline) break;
            const uint64_t number = keys.next();
            const std::string key = workload::key_of(number);
            workload::value_of(number, a.compressible, wanted);
            const auto start = Clock::now();
            bool good;
            if (sequential) {
                if (done == 0) cursor->first();
                else cursor->next();
                good = cursor->valid();
            } else if (seeks) {
                cursor = store.cursor();
                cursor->seek(key);
                good = cursor->valid();
            } else {
                good = store.get(key, value);
            }
            const int64_t took = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
            window.us += took / 1000.0;
            if (!sequential) ns.push_back(static_cast<uint32_t>(std::min<int64_t>(took, UINT32_MAX)));
            if (!good || !(cursor ? cursor->is(key, wanted) : value == wanted))
                throw std::runtime_error("key " + key + " is not there, or its value is wrong");
        }
        window.bytes = of_process("io", "read_bytes: ") - bytes;
        if (reads >= 0) window.reads = store.device_reads().blocks - reads;
        windows.push_back(window);
    }
    print_phase(name, done, ns, windows);
}

// The same with several keys for each call. Gets only.
void phase_of_calls(const Arguments &a, Store &store, const std::string &name) {
    if (name == "seekrandom" || name == "readseq") throw std::runtime_error("--at-once: not for " + name);
    workload::Keys keys(name, a.keys, a.seed);
    std::vector<uint32_t> ns;
    std::vector<Window> windows;
    std::vector<std::string> texts(a.at_once), values(a.at_once), wanted(a.at_once, std::string(a.value_bytes, ' '));
    uint64_t done = 0;
    for (uint64_t w = 0; w < a.windows; w++) {
        const auto deadline = Clock::now() + std::chrono::seconds(a.seconds);
        const uint64_t end = a.operations * (w + 1) / a.windows;
        const uint64_t bytes = of_process("io", "read_bytes: ");
        const int64_t reads = store.device_reads().blocks;
        Window window;
        while (done < end && Clock::now() < deadline) {
            for (size_t i = 0; i < a.at_once; i++) {
                const uint64_t number = keys.next();
                texts[i] = workload::key_of(number);
                workload::value_of(number, a.compressible, wanted[i]);
            }
            const auto start = Clock::now();
            const bool good = store.get_many(texts, values);
            const int64_t took = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
            window.us += took / 1000.0;
            ns.push_back(static_cast<uint32_t>(std::min<int64_t>(took / static_cast<int64_t>(a.at_once), UINT32_MAX)));
            if (!good || values != wanted) throw std::runtime_error("a key is not there, or its value is wrong");
            done += a.at_once;
        }
        window.bytes = of_process("io", "read_bytes: ") - bytes;
        if (reads >= 0) window.reads = store.device_reads().blocks - reads;
        windows.push_back(window);
    }
    print_phase(name, done, ns, windows);
}

void read(const Arguments &a) {
    if (a.operations == 0) throw std::runtime_error("--operations: at least 1");
    if (a.cold == "yes") drop_page_cache(a.settings.folder);
    if (a.cold == "fill") fill_page_cache(a.settings.folder);
    auto store = open_store(a);
    std::vector<std::string> names = {a.workload};
    if (a.workload == "phases") names = {"zipf", "neighbours", "scan"};
    // Names are checked before anything is printed.
    for (const auto &name : names) workload::Keys(name, a.keys, a.seed);
    if (a.warm_up > 0 || a.warm_up_by_pass) warm_up(a, *store, names[0]);
    printf("{\"phases\": [");
    for (size_t i = 0; i < names.size(); i++) {
        if (i > 0) printf(", ");
        if (a.at_once > 1) phase_of_calls(a, *store, names[i]);
        else phase(a, *store, names[i]);
    }
    printf("], \"memory_bytes\": %" PRIu64 "}\n", of_process("status", "VmHWM:") * 1024);
}

}  // namespace

int main(int count, char **words) {
    // Else each thread of the warm-up leaves a heap of its own behind, which counts for the limit and caches nothing.
    mallopt(M_ARENA_MAX, 1);
    // A table is an open file.
    rlimit files{};
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    try {
        const Arguments a = parse(count, words);
        if (a.settings.load) load(a);
        else read(a);
        return 0;
    } catch (const std::exception &error) {
        fflush(stdout);
        fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
