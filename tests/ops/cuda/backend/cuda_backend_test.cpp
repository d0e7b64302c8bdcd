// The CUDA backend on the emulated device (tests/emulator), where work runs late, memory is closed to the
// host, and kernels that leave their block end the process.
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/ops/backend/late_copies.h"
#include "libcore/tensor/span_log.h"
#include "libcore/threads/last_wait.h"
#include "tests/ops/cases.h"
#include "tests/support/emulated_cuda.h"

namespace megalith::test {
namespace {

/// The results of every case, with the device's work in this order.
std::vector<std::vector<Outcome>> outcomes(unsigned order, bool references) {
  emulated_controls().order = order;
  const std::unique_ptr<Backend> backend = make_emulated_backend();
  Stream stream = backend->make_stream();
  std::vector<std::vector<Outcome>> all;
  for (const OpCase& c : op_cases()) {
    Bed bed(stream, references);
    all.push_back(c.run(bed));
    for (Outcome& outcome : all.back()) outcome.what = c.name + " " + outcome.what;
  }
  return all;
}

// A missing barrier gives wrong results in one of the two orders of threads, a missing event in some order of
// streams.
TEST(EmulatedCuda, AgreesWithTheReferenceInEveryOrderOfWork) {
  const long conflicts = emulated_controls().counts.bank_conflicts;
  const std::vector<std::vector<Outcome>> first = outcomes(1, true);
  for (const std::vector<Outcome>& results : first)
    for (const Outcome& outcome : results) EXPECT_EQ(disagreement(outcome), "");
  EXPECT_EQ(emulated_controls().counts.bank_conflicts, conflicts);
  for (const unsigned order : {2U, 3U}) {
    const std::vector<std::vector<Outcome>> other = outcomes(order, false);
    ASSERT_EQ(first.size(), other.size());
    for (size_t i = 0; i < first.size(); ++i)
      for (size_t j = 0; j < first[i].size(); ++j)
        EXPECT_EQ(first[i][j].got, other[i][j].got) << first[i][j].what;
  }
}

TEST(EmulatedCuda, AgreesWithTheReferenceAtOddAddresses) {
  const std::unique_ptr<Backend> backend = make_emulated_backend();
  Stream stream = backend->make_stream();
  for (const OpCase& c : op_cases()) {
    Bed bed(stream, true, true);
    for (const Outcome& outcome : c.run(bed)) EXPECT_EQ(disagreement(outcome), "") << c.name;
  }
}

/// A step of generation: `t` positions after the cached ones, in fp32.
struct CachedCase {
  DType cache;
  int64_t t, past, window;
};

/// The output of CachedAttention, and the cache after it.
std::vector<Values> cached_attention(Stream& stream, const CachedCase& c) {
  constexpr int64_t kBatch = 2, kGroups = 2, kHeads = 3, kHead = 40;
  Bed bed(stream, false);
  const Shape cache{kBatch, kGroups, c.past + c.t + 5, kHead};
  const View k = bed.put(c.cache, cache, random_values(cache.elements(), 1, 1.5)),
             v = bed.put(c.cache, cache, random_values(cache.elements(), 2)),
             qkv = bed.put(DType::kF32, {c.t, kBatch, kGroups, kHeads + 2, kHead},
                           random_values(c.t * kBatch * kGroups * (kHeads + 2) * kHead, 3)),
             out = bed.empty(DType::kF32, {c.t, kBatch, kGroups * kHeads, kHead});
  run(stream, CachedAttention{.out = out,
                              .k_cache = k,
                              .v_cache = v,
                              .qkv = qkv,
                              .past = c.past,
                              .scale = 0.2f,
                              .window = c.window});
  return {bed.get(out), bed.get(k), bed.get(v)};
}

// For a few positions the keys are divided among blocks, for many they are not.
TEST(EmulatedCuda, SeesAWindowOfANarrowCacheAsTheCpuDoes) {
  const std::unique_ptr<Backend> backends[2] = {make_cpu_backend(), make_emulated_backend()};
  Stream cpu = backends[0]->make_stream(), cuda = backends[1]->make_stream();
  for (const DType cache : {DType::kF32, DType::kBf16})
    for (const int64_t t : {1, 5, 20})
      for (const int64_t past : {0, 700})
        for (const int64_t window : {0, 1, 40, 600, 1000}) {
          const CachedCase c{cache, t, past, window};
          const std::vector<Values> want = cached_attention(cpu, c), got = cached_attention(cuda, c);
          EXPECT_EQ(disagreement({"out", got[0], want[0], 4e-6}), "") << t << " " << past << " " << window;
          EXPECT_EQ(got[1], want[1]);
          EXPECT_EQ(got[2], want[2]);
        }
}

/// Tests everything in the backend but its ops: memory, copies, streams, events.
class EmulatedCudaStream : public testing::Test {
 protected:
  std::unique_ptr<Backend> backend_ = make_emulated_backend();
  Stream stream_ = backend_->make_stream();
};

TEST_F(EmulatedCudaStream, FillsConvertsAndAddsEveryDtype) {
  Bed bed(stream_);
  for (const int64_t n : {0, 1, 70001}) {
    for (const DType dtype : {DType::kF32, DType::kBf16, DType::kI8, DType::kI32, DType::kI64, DType::kF64}) {
      const View view = bed.empty(dtype, {n});
      stream_.fill(view, -3);
      EXPECT_EQ(bed.get(view), Values(static_cast<size_t>(n), -3.0)) << name_of(dtype);
    }
    const Memory half = backend_->allocate(static_cast<size_t>(n) * 2);
    const View narrow{half.data.get(), DType::kF16, {n}}, wide = bed.empty(DType::kF32, {n});
    stream_.fill(narrow, 1.5);
    stream_.add(narrow, narrow);
    stream_.copy(wide, narrow);
    EXPECT_EQ(bed.get(wide), Values(static_cast<size_t>(n), 3.0));
  }
  const View sum = bed.put(DType::kF32, {3}, {1, 2, 3});
  stream_.add(sum, bed.put(DType::kBf16, {3}, {0.5, 0.25, 8}));
  EXPECT_EQ(bed.get(sum), (Values{1.5, 2.25, 11}));
}

TEST_F(EmulatedCudaStream, TakesViewsThatStartAnywhere) {
  Bed bed(stream_);
  const View x = bed.put(DType::kBf16, {7, 1}, {1, 2, 3, 4, 5, 6, 7}),
             y = bed.put(DType::kBf16, {7, 1}, Values(7));
  stream_.add(y.rows(1, 7), x.rows(0, 6));
  EXPECT_EQ(bed.get(y), (Values{0, 1, 2, 3, 4, 5, 6}));
}

// Copies run late, so what the caller writes to its memory after the call must not reach the device.
TEST_F(EmulatedCudaStream, UploadsWithoutWaiting) {
  Bed bed(stream_);
  const View x = bed.put(DType::kF32, {3}, Values(3)), y = bed.put(DType::kF32, {3}, Values(3));
  const emulator::CallCounts before = emulated_controls().counts;
  std::vector<float> host = {1, 2, 3};
  stream_.from_host(x, host.data());
  host = {4, 5, 6};
  stream_.from_host(y, host.data());
  host = {7, 8, 9};
  EXPECT_EQ(emulated_controls().counts.waits, before.waits);
  EXPECT_EQ(emulated_controls().counts.allocations, before.allocations);
  EXPECT_EQ(bed.get(x), (Values{1, 2, 3}));
  EXPECT_EQ(bed.get(y), (Values{4, 5, 6}));
  EXPECT_EQ(emulated_controls().counts.waits, before.waits + 2);  // one for each get()
}

TEST_F(EmulatedCudaStream, UploadsMoreThanItCanStage) {
  constexpr int64_t kMany = 5'000'001;  // 20 MB
  std::vector<float> host(kMany);
  for (size_t i = 0; i < host.size(); ++i) host[i] = static_cast<float>(i % 8191);
  const Memory memory = backend_->allocate(host.size() * sizeof(float));
  const View x{memory.data.get(), DType::kF32, {kMany}};
  std::vector<float> back(host.size());
  for (const unsigned order : {1U, 2U}) {
    emulated_controls().order = order;
    stream_.fill(x, 0);
    stream_.from_host(x, host.data());
    stream_.to_host(back.data(), x);
    EXPECT_TRUE(back == host);
  }
}

TEST_F(EmulatedCudaStream, SaysWhenThereIsNoMemory) {
  try {
    backend_->allocate(size_t{1} << 60);
    ADD_FAILURE() << "allocated";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kDevice);
  }
  EXPECT_NE(backend_->allocate(0).data, nullptr);
}

/// Expects kUsage with these words.
void expect_refused(const std::function<void()>& call, const std::vector<std::string>& words) {
  try {
    call();
    ADD_FAILURE() << "ran";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage) << error.what();
    for (const std::string& word : words)
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
  }
}

// What waits for the copy may overwrite what it read.
TEST_F(EmulatedCudaStream, CopiesToLockedMemoryBesideOtherWork) {
  auto* const late = dynamic_cast<LateCopies*>(backend_.get());
  ASSERT_NE(late, nullptr);
  Stream copying = backend_->make_queue_stream();
  for (const unsigned order : {1U, 2U, 3U, 4U, 5U}) {
    emulated_controls().order = order;
    Bed bed(stream_);
    std::vector<float> host(1000);
    const std::shared_ptr<void> locked = late->lock_pages(host.data(), host.size() * sizeof(float));
    EXPECT_NE(locked, nullptr);
    const View x = bed.empty(DType::kF32, {1000});
    stream_.fill(x, 3);
    copying.wait(stream_.record());
    late->copy_out(copying, host.data(), x);
    stream_.wait(copying.record());
    stream_.fill(x, 7);
    stream_.synchronize();
    copying.synchronize();
    EXPECT_EQ(host, std::vector<float>(1000, 3.0f)) << order;
    EXPECT_EQ(bed.get(x), Values(1000, 7.0));
  }
}

TEST_F(EmulatedCudaStream, RefusesWeightsOfEightBits) {
  Bed bed(stream_);
  const View q = bed.empty(DType::kI8, {2, 4}), scales = bed.empty(DType::kF32, {2}),
             w = bed.empty(DType::kF32, {2, 4}), x = bed.empty(DType::kF32, {3, 4}),
             y = bed.empty(DType::kF32, {3, 2});
  const std::vector<std::string> words{"8 bits", "--int8", "--qlora", "--device cpu"};
  expect_refused([&] { run(stream_, QuantizeRows{.q = q, .scales = scales, .w = w}); }, words);
  expect_refused([&] { run(stream_, WidenRows{.w = w, .q = q, .scales = scales}); }, words);
  expect_refused([&] { run(stream_, Project{.y = y, .x = x, .w = q, .scales = scales}); }, words);
}

TEST_F(EmulatedCudaStream, RefusesWiderHeadsAndForeignStreams) {
  Bed bed(stream_);
  const View qkv = bed.empty(DType::kF32, {1, 1, 1, 3, 257}), out = bed.empty(DType::kF32, {1, 1, 1, 257});
  expect_refused([&] { run(stream_, Attention{.out = out, .qkv = qkv, .scale = 1}); },
                 {"257", "--num-attention-heads"});
  Stream foreign(*backend_);
  EXPECT_THROW(foreign.fill(out, 0), Error);
}

// The rows are never touched: the kernel is refused before it is enqueued.
TEST_F(EmulatedCudaStream, RefusesGridsThatNoDeviceTakes) {
  Bed bed(stream_);
  const View one = bed.empty(DType::kF32, {1}), bytes = bed.empty(DType::kF32, {1, 1});
  const Shape rows{int64_t{1} << 31, 1}, pairs{int64_t{1} << 31, 2, 1};
  expect_refused(
      [&] {
        run(stream_, SwiGlu{.y = {one.data, DType::kF32, rows}, .x = {bytes.data, DType::kF32, pairs}});
      },
      {"2147483648 blocks", "--micro-batch-size"});
}

using EmulatedCudaProductDeathTest = EmulatedCudaStream;

TEST_F(EmulatedCudaProductDeathTest, EndsProductsThatLeaveTheirBlock) {
  Bed bed(stream_);
  const View a = bed.empty(DType::kF32, {4, 8}), b = bed.empty(DType::kF32, {8, 64});
  const View c = bed.empty(DType::kF32, {4, 4});
  const auto multiply = [&] {
    run(stream_, Gemm{.c = {c.data, DType::kF32, {4, 64}}, .a = a, .b = b});
    stream_.synchronize();
  };
  EXPECT_EXIT(multiply(), testing::ExitedWithCode(99), "product: [cd]: 1024 bytes that no block");
}

// A row of 8 fp32 or bf16 numbers begins at a multiple of 16 bytes, as fast algorithms need, and one of 4
// does so in fp32 alone.
TEST_F(EmulatedCudaStream, CountsProductsWhoseRowsAreNotAligned) {
  Bed bed(stream_);
  const auto counted = [&](DType dtype, int64_t m, int64_t n, int64_t k) {
    const long before = emulated_controls().counts.unaligned_products;
    run(stream_,
        Gemm{.c = bed.empty(dtype, {m, n}), .a = bed.empty(dtype, {m, k}), .b = bed.empty(dtype, {k, n})});
    stream_.synchronize();
    return emulated_controls().counts.unaligned_products - before;
  };
  EXPECT_EQ(counted(DType::kF32, 3, 4, 4), 0);
  EXPECT_EQ(counted(DType::kF32, 3, 5, 4), 1);
  EXPECT_EQ(counted(DType::kF32, 3, 4, 5), 1);
  EXPECT_EQ(counted(DType::kBf16, 3, 8, 16), 0);
  EXPECT_EQ(counted(DType::kBf16, 3, 4, 16), 1);
  EXPECT_EQ(counted(DType::kBf16, 3, 16, 4), 1);
}

/// The products and kernels of an op.
struct Launched {
  long products, kernels;
  bool operator==(const Launched&) const = default;
};
Launched launched(Stream& stream, const Gemm& op) {
  const auto before = emulated_controls().counts;
  run(stream, op);
  stream.synchronize();
  const auto& after = emulated_controls().counts;
  return {after.products - before.products, after.kernels - before.kernels};
}

// The sums of a bias's gradient are added by a kernel of ours. cuBLASLt takes no matrix of an epilogue whose
// rows are not whole vectors of 8 elements, and the emulated one no GELU of another type than a's.
TEST_F(EmulatedCudaStream, RunsEpiloguesInTheirProduct) {
  Bed bed(stream_);
  const auto product = [&](int64_t columns, DType out) {
    return Gemm{.c = bed.empty(out, {6, columns}),
                .a = bed.empty(DType::kBf16, {6, 16}),
                .b = bed.empty(DType::kBf16, {16, columns})};
  };
  Gemm gelu = product(24, DType::kBf16), grad = gelu, odd = product(20, DType::kBf16),
       wide = product(24, DType::kF32);
  gelu.before_gelu = bed.empty(DType::kBf16, {6, 24});
  gelu.bias = bed.empty(DType::kBf16, {24});
  grad.gelu_grad_at = gelu.before_gelu;
  odd.before_gelu = bed.empty(DType::kBf16, {6, 20});
  wide.before_gelu = bed.empty(DType::kF32, {6, 24});
  EXPECT_EQ(launched(stream_, gelu), (Launched{1, 0}));
  EXPECT_EQ(launched(stream_, grad), (Launched{1, 0}));
  EXPECT_EQ(launched(stream_, odd), (Launched{1, 1}));
  EXPECT_EQ(launched(stream_, wide), (Launched{1, 1}));
  const auto weight = [&](DType out) {
    return Gemm{.c = bed.empty(out, {16, 24}),
                .a = bed.empty(DType::kBf16, {6, 16}),
                .b = bed.empty(DType::kBf16, {6, 24}),
                .trans_a = true,
                .accumulate = true,
                .bias_grad = bed.empty(DType::kF32, {16})};
  };
  EXPECT_EQ(launched(stream_, weight(DType::kF32)), (Launched{1, 1}));
  EXPECT_EQ(launched(stream_, weight(DType::kBf16)), (Launched{1, 2}));  // BiasGrad has two kernels
}

TEST_F(EmulatedCudaStream, OrdersStreamsByEventsThatAreMadeOnce) {
  Bed bed(stream_);
  Stream other = backend_->make_stream();
  EXPECT_NE(other.native(), stream_.native());
  other.wait(Event{});
  const View x = bed.put(DType::kF32, {1000}, Values(1000, 1.0)),
             y = bed.put(DType::kF32, {1000}, Values(1000));
  const long before = emulated_controls().counts.events;
  for (unsigned order = 0; order < 10; ++order) {
    emulated_controls().order = order;
    stream_.add(x, x);
    other.wait(stream_.record());
    other.copy(y, x);
    stream_.wait(other.record());
    EXPECT_EQ(bed.get(y), Values(1000, std::ldexp(1.0, static_cast<int>(order) + 1)));
  }
  EXPECT_LE(emulated_controls().counts.events - before, 1);
}

// A kernel takes a quarter of a second of the device, its enqueue next to nothing of the host.
TEST_F(EmulatedCudaStream, TracesTheTimeOfTheDevice) {
  emulated_controls().work_seconds = 0.25;
  Trace trace;
  Stream traced(*backend_, stream_.native(), &trace);
  Bed bed(stream_);
  const View x = bed.put(DType::kF32, {2, 2}, {1, 2, 3, 4}), y = bed.empty(DType::kF32, {2, 2}),
             sums = bed.put(DType::kF32, {2}, Values(2));
  const long before = emulated_controls().counts.waits;
  run(traced, Activate{.y = y, .x = x});
  run(traced, Activate{.y = y, .x = y});
  run(traced, BiasGrad{.dbias = sums, .dy = x});  // two kernels
  traced.copy(y, x);
  EXPECT_EQ(emulated_controls().counts.waits, before);
  EXPECT_EQ(trace.entries().at("activate").calls, 2);
  EXPECT_EQ(trace.entries().at("activate").seconds, 0.5);
  EXPECT_EQ(trace.entries().at(BiasGrad::kName).seconds, 0.5);
  EXPECT_EQ(trace.entries().at("copy").seconds, 0.25);
  trace.clear();
  run(traced, Activate{.y = y, .x = x});
  EXPECT_EQ(trace.entries().at("activate").seconds, 0.25);
  emulated_controls().work_seconds = emulator::Controls{}.work_seconds;
}

// --trace asks the device, not a function that the driver calls.
TEST_F(EmulatedCudaStream, NotesSpansByEvents) {
  using Seconds = std::chrono::duration<double>;
  emulated_controls().work_seconds = 0.25;
  Bed bed(stream_);
  const View x = bed.put(DType::kF32, {2, 2}, {1, 2, 3, 4}), y = bed.empty(DType::kF32, {2, 2});
  SpanLog log;
  log.set_on(true);
  stream_.set_spans(&log);
  const long before = emulated_controls().counts.host_functions;
  const auto begin = SpanLog::Clock::now();
  {
    const StreamSpan step(stream_, "step");
    run(stream_, Activate{.y = y, .x = x});
    {
      const StreamSpan inner(stream_, "inner");
      run(stream_, Activate{.y = y, .x = y});
      run(stream_, Activate{.y = y, .x = y});
    }
  }
  const std::vector<SpanLog::Span> spans = log.take();
  const auto end = SpanLog::Clock::now();
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_EQ(spans[0].name, "inner");
  EXPECT_EQ(spans[1].name, "step");
  EXPECT_EQ(Seconds(spans[0].end - spans[0].begin).count(), 0.5);
  EXPECT_EQ(Seconds(spans[1].end - spans[1].begin).count(), 0.75);
  EXPECT_EQ(Seconds(spans[0].begin - spans[1].begin).count(), 0.25);
  EXPECT_GE(spans[1].begin, begin);
  EXPECT_LE(spans[1].begin, end);
  EXPECT_EQ(emulated_controls().counts.host_functions, before);
  EXPECT_TRUE(log.take().empty());
  emulated_controls().work_seconds = emulator::Controls{}.work_seconds;
}

TEST_F(EmulatedCudaStream, CallsHostWorkAndKeepsItsError) {
  Stream queue = backend_->make_queue_stream();
  int done = 0;
  queue.enqueue([&] { ++done; });
  queue.synchronize();
  EXPECT_EQ(done, 1);
  queue.enqueue([] { fail(ErrorKind::kComm, "a peer failed"); });
  for (const auto& call :
       std::vector<std::function<void()>>{[&] { queue.synchronize(); }, [&] { queue.wait(Event{}); },
                                          [&] { queue.enqueue([&] { ++done; }); }})
    try {
      call();
      ADD_FAILURE() << "did not throw";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kComm);
    }
  EXPECT_EQ(done, 1);
  stream_.synchronize();  // does not throw: only the other stream has failed
}

TEST(EmulatedCudaChoice, RefusesADeviceThatIsNotThere) {
  for (const int device : {-1, 1}) {
    try {
      make_emulated_backend(device);
      ADD_FAILURE() << "made";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kDevice);
    }
  }
}

TEST(EmulatedCudaDevices, WorkForTwoThreadsAtATime) {
  const OwnEmulatedGpus devices(1, 2);
  std::vector<Outcome> results[2];
  const auto work = [&](int device) {
    const std::unique_ptr<Backend> backend = make_emulated_backend(device);
    Stream stream = backend->make_stream();
    for (const OpCase& c : op_cases()) {
      if (!c.name.starts_with(Gemm::kName) && !c.name.starts_with(LayerNormGrad::kName)) continue;
      Bed bed(stream);
      for (Outcome& outcome : c.run(bed)) results[device].push_back(std::move(outcome));
    }
  };
  std::thread second(work, 1);
  work(0);
  second.join();
  EXPECT_GT(results[0].size(), 10U);
  EXPECT_EQ(results[0].size(), results[1].size());
  for (const std::vector<Outcome>& of_device : results)
    for (const Outcome& outcome : of_device) EXPECT_EQ(disagreement(outcome), "");
}

TEST(EmulatedCudaDevicesDeathTest, HaveMemoryOfTheirOwn) {
  const OwnEmulatedGpus devices(1, 2);
  const std::unique_ptr<Backend> backends[2] = {make_emulated_backend(0), make_emulated_backend(1)};
  Stream first = backends[0]->make_stream(), second = backends[1]->make_stream();
  Bed bed(first), other(second);
  const View x = bed.empty(DType::kF32, {4}), y = other.empty(DType::kF32, {4});
  const auto use = [&] {
    run(second, Activate{.y = y, .x = x});
    second.synchronize();
  };
  EXPECT_EXIT(use(), testing::ExitedWithCode(99), "device code leaves its block or its device");
}

TEST(CudaBackendDeathTest, EndsTheProcessIfAStreamsWorkNeverEnds) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto hang = [] {
    set_last_wait_limit(std::chrono::milliseconds(200));
    emulated_controls().never_done = true;
  };
  EXPECT_EXIT(
      {
        const std::unique_ptr<Backend> backend = make_emulated_backend();
        const Drain drain(backend->make_stream());
        hang();
      },
      testing::ExitedWithCode(75), "waited 0.2 s for the work of a CUDA stream");
  EXPECT_EXIT(
      {
        const std::unique_ptr<Backend> backend = make_emulated_backend();
        backend->make_stream();
        hang();
      },
      testing::ExitedWithCode(75), "waited 0.2 s for the work of a CUDA stream");
}

}  // namespace
}  // namespace megalith::test
