#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/perf_context.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include <stdexcept>

#include "store.hh"

namespace {

void check(const rocksdb::Status &status) {
    if (!status.ok()) throw std::runtime_error("RocksDB: " + status.ToString());
}

class RocksCursor : public Cursor {
  public:
    explicit RocksCursor(rocksdb::Iterator *iterator) : iterator_(iterator) {}
    void seek(const std::string &key) override { iterator_->Seek(key); }
    void first() override { iterator_->SeekToFirst(); }
    void next() override { iterator_->Next(); }
    bool valid() override { return iterator_->Valid(); }
    bool is(const std::string &key, const std::string &value) override {
        return iterator_->Valid() && iterator_->key() == rocksdb::Slice(key) && iterator_->value() == rocksdb::Slice(value);
    }

  private:
    std::unique_ptr<rocksdb::Iterator> iterator_;
};

class RocksStore : public Store {
  public:
    explicit RocksStore(const Settings &settings) {
        if (settings.file_reads == "mmap") throw std::runtime_error("RocksDB is not measured with mmap");
        rocksdb::BlockBasedTableOptions table;
        table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
        table.block_size = settings.block_bytes;
        // Index and filters lie beside the caches, as Granary's index does.
        table.cache_index_and_filter_blocks = false;
        table.no_block_cache = settings.cache_bytes == 0;
        if (settings.cache_bytes > 0) table.block_cache = rocksdb::NewLRUCache(settings.cache_bytes);
        rocksdb::Options options;
        options.create_if_missing = settings.load;
        options.error_if_exists = settings.load;
        if (settings.row_cache_bytes > 0) options.row_cache = rocksdb::NewLRUCache(settings.row_cache_bytes);
        options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
        options.compression = settings.compress ? rocksdb::kSnappyCompression : rocksdb::kNoCompression;
        options.use_direct_reads = settings.file_reads != "buffered";
        options.max_open_files = -1;
        options.disable_auto_compactions = !settings.load;
        if (settings.load) {
            options.write_buffer_size = 64 << 20;
            options.max_background_jobs = 4;
        }
        rocksdb::DB *db = nullptr;
        check(rocksdb::DB::Open(options, settings.folder, &db));
        db_.reset(db);
        rocksdb::SetPerfLevel(rocksdb::kEnableCount);
    }
    void put(const std::string &key, const std::string &value) override {
        check(batch_.Put(key, value));
        if (++batched_ == 1000) write();
    }
    void finish() override {
        write();
        check(db_->CompactRange(rocksdb::CompactRangeOptions(), nullptr, nullptr));
    }
    bool get(const std::string &key, std::string &value) override {
        const rocksdb::Status status = db_->Get(rocksdb::ReadOptions(), key, &value);
        if (!status.IsNotFound()) check(status);
        return status.ok();
    }
    bool get_many(const std::vector<std::string> &keys, std::vector<std::string> &values) override {
        slices_.assign(keys.begin(), keys.end());
        found_.resize(keys.size());
        statuses_.resize(keys.size());
        db_->MultiGet(rocksdb::ReadOptions(), db_->DefaultColumnFamily(), keys.size(), slices_.data(), found_.data(), statuses_.data());
        bool all = true;
        for (size_t i = 0; i < keys.size(); i++) {
            if (!statuses_[i].IsNotFound()) check(statuses_[i]);
            all &= statuses_[i].ok();
            values[i].assign(found_[i].data(), found_[i].size());
            found_[i].Reset();
        }
        return all;
    }
    std::unique_ptr<Cursor> cursor() override {
        return std::make_unique<RocksCursor>(db_->NewIterator(rocksdb::ReadOptions()));
    }
    DeviceReads device_reads() override { return {static_cast<int64_t>(rocksdb::get_perf_context()->block_read_count)}; }

  private:
    void write() {
        rocksdb::WriteOptions options;
        options.disableWAL = true;
        check(db_->Write(options, &batch_));
        batch_.Clear();
        batched_ = 0;
    }
    rocksdb::WriteBatch batch_;
    int batched_ = 0;
    // Of get_many, which one thread calls.
    std::vector<rocksdb::Slice> slices_;
    std::vector<rocksdb::PinnableSlice> found_;
    std::vector<rocksdb::Status> statuses_;
    std::unique_ptr<rocksdb::DB> db_;
};

}  // namespace

std::unique_ptr<Store> open_rocksdb(const Settings &settings) { return std::make_unique<RocksStore>(settings); }
