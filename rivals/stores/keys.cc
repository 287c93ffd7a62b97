// Prints the keys of a workload, and the value of the first, for comparison with Granary's own: needs no store.
//   keys WORKLOAD KEYS SEED COUNT
#include <cstdlib>

#include "workload.hh"

int main(int count, char **arguments) {
    if (count != 5) {
        fprintf(stderr, "usage: keys WORKLOAD KEYS SEED COUNT\n");
        return 2;
    }
    const uint64_t all = strtoull(arguments[2], nullptr, 10);
    try {
        workload::Keys keys(arguments[1], all, strtoull(arguments[3], nullptr, 10));
        workload::Permutation order(all, workload::load_seed);
        for (uint64_t n = strtoull(arguments[4], nullptr, 10), i = 0; i < n; i++) {
            const uint64_t key = keys.next();
            std::string value(13, ' ');
            workload::value_of(key, i % 2 == 0, value);
            printf("%s %llu ", workload::key_of(key).c_str(), static_cast<unsigned long long>(order(i % all)));
            for (unsigned char byte : value) printf("%02x", byte);
            printf("\n");
        }
    } catch (const std::exception &error) {
        fprintf(stderr, "%s\n", error.what());
        return 2;
    }
}
