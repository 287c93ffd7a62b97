// One way to speak with LevelDB and with RocksDB.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

struct Settings {
    std::string folder;
    uint64_t cache_bytes = 8 << 20;
    uint64_t row_cache_bytes = 0;  // RocksDB only.
    uint64_t block_bytes = 4096;   // Of what is loaded.
    std::string file_reads;        // "direct" (RocksDB), "buffered" (pread), "mmap" (LevelDB).
    bool compress = false;
    bool load = false;
};

struct DeviceReads {
    int64_t blocks = -1;  // -1: it does not say.
};

class Cursor {
  public:
    virtual ~Cursor() = default;
    virtual void seek(const std::string &key) = 0;
    virtual void first() = 0;
    virtual void next() = 0;
    virtual bool valid() = 0;
    virtual bool is(const std::string &key, const std::string &value) = 0;
};

class Store {
  public:
    virtual ~Store() = default;
    virtual void put(const std::string &key, const std::string &value) = 0;  // In batches.
    virtual void finish() = 0;                                               // Writes the last batch, compacts.
    virtual bool get(const std::string &key, std::string &value) = 0;        // False: it is not there.
    // Several at once where the store can; else one after the other. False: one is not there.
    virtual bool get_many(const std::vector<std::string> &keys, std::vector<std::string> &values) {
        bool all = true;
        for (size_t i = 0; i < keys.size(); i++) all &= get(keys[i], values[i]);
        return all;
    }
    virtual std::unique_ptr<Cursor> cursor() = 0;
    virtual DeviceReads device_reads() = 0;  // Of the calling thread.
};

std::unique_ptr<Store> open_leveldb(const Settings &settings);
std::unique_ptr<Store> open_rocksdb(const Settings &settings);
