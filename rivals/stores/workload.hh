// Keys, values and orders of reading: the same numbers as crates/lab/src/store makes in Rust, bit for bit.
//
// - Random numbers are splitmix64. A number below n is the upper half of the product of the next one and n.
// - A permutation of 0..n is a Feistel network of four rounds on the least even number of bits that holds n - 1,
//   applied again as long as the result is not below n.
// - Zipf ranks (exponent 0.99) are drawn by rejection from the inverted integral (Hoermann and Derflinger, 1996).
//   Compile with -ffp-contract=off, or sums may be rounded otherwise than in Rust.
// - A key is its number in sixteen decimal digits. A value is the bytes of splitmix64 seeded with the key, each number
//   little-endian; the second half of a compressible one repeats the first.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>

namespace workload {

inline uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

class Random {
  public:
    explicit Random(uint64_t seed) : state_(seed) {}
    uint64_t next() { return mix(state_ += 0x9E3779B97F4A7C15u); }
    uint64_t below(uint64_t n) { return static_cast<unsigned __int128>(next()) * n >> 64; }
    double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

  private:
    uint64_t state_;
};

class Permutation {
  public:
    Permutation(uint64_t n, uint64_t seed) : n_(n), seed_(seed) {
        unsigned bits = 2;
        while (bits < 62 && (uint64_t{1} << bits) < n) bits += 2;
        half_ = bits / 2;
    }
    uint64_t operator()(uint64_t number) const {
        const uint64_t mask = (uint64_t{1} << half_) - 1;
        do {
            uint64_t left = number >> half_, right = number & mask;
            for (uint64_t round = 0; round < 4; round++) {
                const uint64_t next = left ^ (mix(seed_ + (round << 60) + right + 1) & mask);
                left = right;
                right = next;
            }
            number = left << half_ | right;
        } while (number >= n_);
        return number;
    }

  private:
    uint64_t n_, seed_;
    unsigned half_;
};

class Zipf {
  public:
    explicit Zipf(uint64_t n) : n_(static_cast<double>(n)) {
        first_ = integral(1.5) - 1.0;
        last_ = integral(n_ + 0.5);
        near_ = 2.0 - inverse(integral(2.5) - density(2.0));
    }
    // From 0, the most popular.
    uint64_t rank(Random &random) const {
        for (;;) {
            const double u = last_ + random.unit() * (first_ - last_);
            const double x = inverse(u);
            const double k = std::min(std::max(std::floor(x + 0.5), 1.0), n_);
            if (k - x <= near_ || u >= integral(k + 0.5) - density(k)) return static_cast<uint64_t>(k) - 1;
        }
    }

  private:
    static constexpr double exponent = 0.99, rest = 1.0 - exponent;
    static double density(double x) { return std::pow(x, -exponent); }
    static double integral(double x) { return (std::pow(x, rest) - 1.0) / rest; }
    static double inverse(double y) { return std::pow(1.0 + y * rest, 1.0 / rest); }
    double n_, first_, last_, near_;
};

// Seeds of the orders in which keys are loaded, popular ones are scattered, and all are read to fill the caches.
constexpr uint64_t load_seed = 1, scatter_seed = 2, pass_seed = 3;
constexpr uint64_t run_length = 50;

// Keys that a workload may read: those below this number.
inline uint64_t keys_of(const std::string &name, uint64_t keys) { return name == "readhot" ? (keys + 99) / 100 : keys; }

// Numbers of keys, in the order in which a workload reads them.
class Keys {
  public:
    Keys(const std::string &name, uint64_t keys, uint64_t seed)
        : name_(name), keys_(keys), random_(seed), runs_(std::max<uint64_t>(keys / run_length, 1)), zipf_(keys),
          zipf_of_runs_(runs_), scatter_(keys, scatter_seed), scatter_runs_(runs_, scatter_seed) {
        if (name != "readrandom" && name != "seekrandom" && name != "readhot" && name != "zipf" && name != "neighbours" &&
            name != "scan" && name != "readseq")
            throw std::runtime_error("no workload is called " + name);
    }
    uint64_t next() {
        if (name_ == "readhot") return random_.below(keys_of(name_, keys_));
        if (name_ == "zipf") return scatter_(zipf_.rank(random_));
        if (name_ == "neighbours") {
            const uint64_t at = count_++ % run_length;
            if (at == 0) start_ = scatter_runs_(zipf_of_runs_.rank(random_)) * run_length;
            return (start_ + at) % keys_;
        }
        if (name_ == "scan" || name_ == "readseq") return count_++ % keys_;
        return random_.below(keys_);
    }

  private:
    std::string name_;
    uint64_t keys_, count_ = 0, start_ = 0;
    Random random_;
    uint64_t runs_;
    Zipf zipf_, zipf_of_runs_;
    Permutation scatter_, scatter_runs_;
};

inline std::string key_of(uint64_t number) {
    char text[24];
    snprintf(text, sizeof text, "%016llu", static_cast<unsigned long long>(number));
    return text;
}

// Writes the value of a key into `value`, whose length it keeps.
inline void value_of(uint64_t number, bool compressible, std::string &value) {
    const size_t drawn = compressible ? (value.size() + 1) / 2 : value.size();
    Random random(number);
    for (size_t at = 0; at < drawn; at += 8) {
        const uint64_t word = random.next();
        for (size_t byte = at; byte < std::min(at + 8, drawn); byte++) value[byte] = static_cast<char>(word >> (byte - at) * 8);
    }
    for (size_t at = drawn; at < value.size(); at++) value[at] = value[at - drawn];
}

}  // namespace workload
