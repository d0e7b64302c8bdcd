#include "libcore/plan/profile/device_probe.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/machine/proc.h"
#include "libcore/base/process.h"
#include "libcore/ops/backend/cuda_plugin.h"
#include "libcore/plan/profile/profile_grid.h"
#include "libcore/tensor/arena.h"

namespace megalith {
namespace {

constexpr int64_t kPattern = 1 << 20;  // number of random values: a device's power depends on its data

size_t aligned(size_t bytes) {
  return (bytes + Arena::kAlignment - 1) / Arena::kAlignment * Arena::kAlignment;
}

View part_of(const Memory& memory, size_t& at, DType dtype, Shape shape) {
  const size_t bytes = Arena::bytes_of(dtype, shape);
  if (bytes > memory.bytes) fail(ErrorKind::kInternal, "a profile's operand ", shape, " is too large");
  if (at + bytes > memory.bytes) at = 0;
  const View view{static_cast<std::byte*>(memory.data.get()) + at, dtype, shape};
  at += bytes;
  return view;
}

// The operands take several times the last-level cache.
constexpr size_t kCpuOperands = size_t{1} << 27, kGpuOperands = size_t{1} << 31;

/// Less on a small GPU: all of them take a quarter of its memory at most.
size_t gpu_operands() {
  return std::min(kGpuOperands, cuda_memory(0).all / 8);
}

float scale_of(const ProfilePoint& point) {
  return 1 / std::sqrt(static_cast<float>(point.head));
}

}  // namespace

DeviceProbe::DeviceProbe(Backend& backend, DType dtype, size_t bytes)
    : stream_(backend.make_stream()),
      dtype_(dtype),
      bytes_(aligned(bytes)),
      inputs_(backend.allocate(bytes_)),
      outputs_(backend.allocate(bytes_)),
      floats_(backend.allocate(kPattern * sizeof(float))) {
  std::vector<float> values(kPattern);
  uint64_t state = 1;
  for (float& value : values) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    value = static_cast<float>(static_cast<double>(state >> 40) / (1 << 24) - 0.5);
  }
  const View pattern{floats_.data.get(), DType::kF32, {kPattern}};
  stream_.from_host(pattern, values.data());
  const auto count = static_cast<int64_t>(bytes_ / size_of(dtype));
  const View all{inputs_.data.get(), dtype, {count}};
  for (int64_t from = 0; from < count; from += kPattern) {
    const int64_t length = std::min(kPattern, count - from);
    stream_.copy(all.rows(from, from + length), ConstView(pattern).rows(0, length));
  }
  stream_.synchronize();
}

ConstView DeviceProbe::input(Shape shape) {
  return part_of(inputs_, input_at_, dtype_, shape);
}

ConstView DeviceProbe::made(Shape shape) {
  size_t at = 0;
  return part_of(inputs_, at, dtype_, shape);
}

View DeviceProbe::output(DType dtype, Shape shape) {
  return part_of(outputs_, output_at_, dtype, shape);
}

bool DeviceProbe::holds(const ProfilePoint& p) const {
  constexpr size_t kOperands = 4;  // the most operands that one op has in one block
  const int64_t largest = p.kind == ProfiledKind::kProduct
                              ? std::max({p.rows * p.columns, p.rows * p.depth, p.columns * p.depth})
                              : std::max(p.rows * p.columns, 3 * p.sequence * p.heads * p.head);
  return kOperands * (static_cast<size_t>(largest) * sizeof(float) + Arena::kAlignment) <= bytes_;
}

DeviceProbe::Op DeviceProbe::product(const ProfilePoint& p) {
  if (p.op == "forward")
    return Gemm{.c = output(dtype_, {p.rows, p.columns}),
                .a = made({p.rows, p.depth}),
                .b = input({p.columns, p.depth}),
                .trans_b = true};
  if (p.op == "input-gradient")
    return Gemm{.c = output(dtype_, {p.rows, p.columns}),
                .a = made({p.rows, p.depth}),
                .b = input({p.depth, p.columns})};
  return Gemm{.c = output(DType::kF32, {p.rows, p.columns}),  // gradients are summed in fp32
              .a = made({p.depth, p.rows}),
              .b = input({p.depth, p.columns}),
              .trans_a = true,
              .accumulate = true};
}

DeviceProbe::Op DeviceProbe::memory_op(const ProfilePoint& p) {
  const Shape shape{p.rows, p.columns}, row{p.columns}, column{p.rows};
  if (p.op == "layer_norm")
    return LayerNorm{.y = output(dtype_, shape),
                     .x = made(shape),
                     .w = input(row),
                     .b = input(row),
                     .mean = output(DType::kF32, column),
                     .rstd = output(DType::kF32, column),
                     .residual = input(shape),
                     .sum = output(dtype_, shape)};
  if (p.op == "layer_norm_grad")
    return LayerNormGrad{.dx = output(dtype_, shape),
                         .dw = output(DType::kF32, row),
                         .db = output(DType::kF32, row),
                         .dy = made(shape),
                         .x = input(shape),
                         .w = input(row),
                         .mean = {floats_.data.get(), DType::kF32, column},
                         .rstd = {floats_.data.get(), DType::kF32, column},
                         .add = input(shape)};
  if (p.op == "gelu_grad")
    return ActivateGrad{.dx = output(dtype_, shape), .dy = made(shape), .x = input(shape)};
  return Activate{.y = output(dtype_, shape), .x = made(shape)};
}

Attention DeviceProbe::attention(const ProfilePoint& p) {
  return {.out = output(dtype_, {p.sequence, 1, p.heads, p.head}),
          .qkv = made({p.sequence, 1, p.heads, 3, p.head}),
          .scale = scale_of(p),
          .lse = output(DType::kF32, {1, p.heads, p.sequence})};
}

AttentionGrad DeviceProbe::gradient(const Attention& of) {
  return {.dqkv = output(dtype_, of.qkv.shape),
          .dout = input(of.out.shape),
          .out = of.out,
          .qkv = of.qkv,
          .lse = of.lse,
          .scale = of.scale};
}

DeviceProbe::Op DeviceProbe::op_of(const ProfilePoint& p) {
  switch (p.kind) {
    case ProfiledKind::kProduct:
      return product(p);
    case ProfiledKind::kAttention:
      return attention(p);
    case ProfiledKind::kAttentionGradient:
      return gradient(attention(p));
    default:
      return memory_op(p);
  }
}

void DeviceProbe::call(const Op& op) {
  std::visit([this](const auto& one) { run(stream_, one); }, op);
}

ProfilePoint DeviceProbe::priced(const ProfilePoint& p) {
  ProfilePoint out = p;
  const Cost cost = std::visit([](const auto& op) { return op.cost(); }, op_of(p));
  out.flops = cost.flops;
  out.bytes = cost.bytes;
  return out;
}

double DeviceProbe::seconds_of(const ProfilePoint& p, int64_t times) {
  const bool is_gradient = p.kind == ProfiledKind::kAttentionGradient;
  if (is_gradient) output_at_ = 0;  // makes room for the forward results and, after them, the gradient
  const Attention forward = is_gradient ? attention(p) : Attention{};
  if (is_gradient) run(stream_, forward);
  const size_t kept = output_at_;
  stream_.synchronize();
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < times; ++i) {
    if (is_gradient) {
      output_at_ = kept;
      call(gradient(forward));
    } else {
      call(op_of(p));
    }
  }
  stream_.synchronize();
  return seconds_since(start);
}

DeviceProfile profile_device(const ProfileRequest& request) {
  set_cpu_threads(request.threads);
  const std::unique_ptr<Backend> backend = make_backend(request.backend);
  const bool cpu = std::string_view(backend->name()) == "cpu";
  DeviceProbe probe(*backend, request.dtype, cpu ? kCpuOperands : gpu_operands());
  DeviceProfile profile{.device = request.device,
                        .processor = processor_name(),
                        .backend = backend->name(),
                        .dtype = std::string(name_of(request.dtype)),
                        .date = time_now(),
                        .version = MEGALITH_VERSION,
                        .threads = request.threads > 0 ? request.threads : usable_cpus(),
                        .points = {}};
  std::vector<ProfilePoint> grid = profile_grid(cpu ? 8 : 32);
  std::erase_if(grid, [&](const ProfilePoint& point) { return !probe.holds(point); });
  profile.grid = static_cast<int64_t>(grid.size());
  // Warms up: the first calls load libraries and build kernels. The grid's first points include every kind of
  // op.
  constexpr size_t kFirst = 16;
  for (size_t i = 0; i < std::min(kFirst, grid.size()); ++i) probe.seconds_of(grid[i], 1);
  const auto start = std::chrono::steady_clock::now();
  Progress progress("measuring", static_cast<int64_t>(std::ceil(request.seconds)), "s");
  const Probing probing{
      .seconds_of = [&](const ProfilePoint& p, int64_t times) { return probe.seconds_of(p, times); },
      .clock = [&] { return seconds_since(start); },
      .progress =
          [&](double elapsed, size_t measured) {
            progress.advance_to(static_cast<int64_t>(elapsed),
                                concat(measured, " of ", grid.size(), " points"));
          }};
  profile.points = measure_grid(grid, request.seconds, probing);
  for (ProfilePoint& point : profile.points) point = probe.priced(point);
  profile.seconds = seconds_since(start);
  return profile;
}

}  // namespace megalith
