#include <fcntl.h>
#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/env.h>
#include <leveldb/filter_policy.h>
#include <leveldb/write_batch.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "store.hh"

namespace {

void check(const leveldb::Status &status) {
    if (!status.ok()) throw std::runtime_error("LevelDB: " + status.ToString());
}

class ReadFile : public leveldb::RandomAccessFile {
  public:
    ReadFile(std::string name, int file) : name_(std::move(name)), file_(file) {}
    ~ReadFile() override { close(file_); }
    leveldb::Status Read(uint64_t offset, size_t n, leveldb::Slice *result, char *scratch) const override {
        const ssize_t got = pread(file_, scratch, n, static_cast<off_t>(offset));
        *result = leveldb::Slice(scratch, got < 0 ? 0 : got);
        return got < 0 ? leveldb::Status::IOError(name_, strerror(errno)) : leveldb::Status::OK();
    }

  private:
    std::string name_;
    int file_;
};

// LevelDB maps its first thousand tables, and does not put into its block cache what it finds in a map. This
// environment reads tables with pread, so that uncompressed blocks are cached.
class ReadEnv : public leveldb::EnvWrapper {
  public:
    ReadEnv() : EnvWrapper(leveldb::Env::Default()) {}
    leveldb::Status NewRandomAccessFile(const std::string &name, leveldb::RandomAccessFile **result) override {
        const int file = open(name.c_str(), O_RDONLY | O_CLOEXEC);
        *result = file < 0 ? nullptr : new ReadFile(name, file);
        return file < 0 ? leveldb::Status::IOError(name, strerror(errno)) : leveldb::Status::OK();
    }
};

class LevelCursor : public Cursor {
  public:
    explicit LevelCursor(leveldb::Iterator *iterator) : iterator_(iterator) {}
    void seek(const std::string &key) override { iterator_->Seek(key); }
    void first() override { iterator_->SeekToFirst(); }
    void next() override { iterator_->Next(); }
    bool valid() override { return iterator_->Valid(); }
    bool is(const std::string &key, const std::string &value) override {
        return iterator_->Valid() && iterator_->key() == leveldb::Slice(key) && iterator_->value() == leveldb::Slice(value);
    }

  private:
    std::unique_ptr<leveldb::Iterator> iterator_;
};

class LevelStore : public Store {
  public:
    explicit LevelStore(const Settings &settings)
        : cache_(leveldb::NewLRUCache(settings.cache_bytes)), filter_(leveldb::NewBloomFilterPolicy(10)) {
        if (settings.row_cache_bytes > 0) throw std::runtime_error("LevelDB has no row cache");
        if (settings.file_reads == "direct") throw std::runtime_error("LevelDB has no direct reads");
        leveldb::Options options;
        options.create_if_missing = settings.load;
        options.error_if_exists = settings.load;
        options.block_cache = cache_.get();
        options.filter_policy = filter_.get();
        options.block_size = settings.block_bytes;
        options.max_open_files = 50000;
        options.compression = settings.compress ? leveldb::kSnappyCompression : leveldb::kNoCompression;
        if (settings.load) options.write_buffer_size = 64 << 20;
        if (settings.file_reads == "buffered") options.env = &env_;
        leveldb::DB *db = nullptr;
        check(leveldb::DB::Open(options, settings.folder, &db));
        db_.reset(db);
    }
    void put(const std::string &key, const std::string &value) override {
        batch_.Put(key, value);
        if (++batched_ == 1000) write();
    }
    void finish() override {
        write();
        db_->CompactRange(nullptr, nullptr);
    }
    bool get(const std::string &key, std::string &value) override {
        const leveldb::Status status = db_->Get(leveldb::ReadOptions(), key, &value);
        if (!status.IsNotFound()) check(status);
        return status.ok();
    }
    std::unique_ptr<Cursor> cursor() override {
        return std::make_unique<LevelCursor>(db_->NewIterator(leveldb::ReadOptions()));
    }
    DeviceReads device_reads() override { return {}; }

  private:
    void write() {
        check(db_->Write(leveldb::WriteOptions(), &batch_));
        batch_.Clear();
        batched_ = 0;
    }
    // In the order in which they may go: the database last made, first gone.
    std::unique_ptr<leveldb::Cache> cache_;
    std::unique_ptr<const leveldb::FilterPolicy> filter_;
    ReadEnv env_;
    leveldb::WriteBatch batch_;
    int batched_ = 0;
    std::unique_ptr<leveldb::DB> db_;
};

}  // namespace

std::unique_ptr<Store> open_leveldb(const Settings &settings) { return std::make_unique<LevelStore>(settings); }
