// Times Arrow C++'s BlockSplitBloomFilter: hash+insert and hash+check, one value at a time and in batches.
// Usage: arrow_sbbf int64|string VALUES_FILE FILTER_BYTES REPEATS FILTER_FILE
// Values are raw int64s, or 36-byte strings end to end. The filled filter is written to FILTER_FILE.
// Prints one line for each measurement: operation api nanoseconds_per_value hits
#include <arrow/io/file.h>
#include <parquet/bloom_filter.h>
#include <parquet/types.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

constexpr int kBatch = 1024;
constexpr size_t kStringBytes = 36;

template <typename Work>
double BestSeconds(int repeats, Work work) {
  double best = 1e9;
  for (int i = 0; i < repeats; ++i) {
    auto start = std::chrono::steady_clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

uint64_t HashOne(const parquet::BloomFilter& filter, int64_t value) { return filter.Hash(value); }
uint64_t HashOne(const parquet::BloomFilter& filter, const parquet::ByteArray& value) { return filter.Hash(&value); }

template <typename Value>
void Measure(const std::vector<Value>& values, uint32_t filter_bytes, int repeats, const std::string& filter_path) {
  const size_t count = values.size();
  auto report = [&](const char* operation, const char* api, double seconds, size_t hits) {
    std::printf("%s %s %.4f %zu\n", operation, api, seconds * 1e9 / count, hits);
  };
  std::vector<uint64_t> hashes(kBatch);
  auto fresh = [&](parquet::BlockSplitBloomFilter& filter) { filter.Init(filter_bytes); };

  parquet::BlockSplitBloomFilter filter;
  fresh(filter);
  double insert_single = BestSeconds(repeats, [&] {
    for (const auto& value : values) filter.InsertHash(HashOne(filter, value));
  });
  report("insert", "single", insert_single, 0);

  parquet::BlockSplitBloomFilter batched;
  fresh(batched);
  double insert_batch = BestSeconds(repeats, [&] {
    for (size_t at = 0; at < count; at += kBatch) {
      int n = static_cast<int>(std::min<size_t>(kBatch, count - at));
      batched.Hashes(values.data() + at, n, hashes.data());
      batched.InsertHashes(hashes.data(), n);
    }
  });
  report("insert", "batch", insert_batch, 0);

  size_t hits = 0;
  double check_single = BestSeconds(repeats, [&] {
    hits = 0;
    for (const auto& value : values) hits += filter.FindHash(HashOne(filter, value));
  });
  report("check", "single", check_single, hits);

  double check_batch = BestSeconds(repeats, [&] {
    hits = 0;
    for (size_t at = 0; at < count; at += kBatch) {
      int n = static_cast<int>(std::min<size_t>(kBatch, count - at));
      filter.Hashes(values.data() + at, n, hashes.data());
      for (int i = 0; i < n; ++i) hits += filter.FindHash(hashes[i]);
    }
  });
  report("check", "batch", check_batch, hits);

  auto sink = *arrow::io::FileOutputStream::Open(filter_path);
  batched.WriteTo(sink.get());
  (void)sink->Close();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const std::string kind = argv[1];
  std::ifstream file(argv[2], std::ios::binary);
  std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto filter_bytes = static_cast<uint32_t>(std::stoul(argv[3]));
  const int repeats = std::stoi(argv[4]);
  if (kind == "int64") {
    const auto* first = reinterpret_cast<const int64_t*>(bytes.data());
    Measure(std::vector<int64_t>(first, first + bytes.size() / sizeof(int64_t)), filter_bytes, repeats, argv[5]);
  } else {
    std::vector<parquet::ByteArray> values;
    for (size_t at = 0; at + kStringBytes <= bytes.size(); at += kStringBytes)
      values.emplace_back(kStringBytes, reinterpret_cast<const uint8_t*>(bytes.data() + at));
    Measure(values, filter_bytes, repeats, argv[5]);
  }
}
