// gpu_probe facts | cudnn | peaks | attention [--quick], gpu_probe nccl RANKS [--quick]: what tools/gpu_check
// asks of a device beside what the programs print. facts: the device, and the versions of what drives it.
// cudnn: the properties of the device from which cuDNN makes plans elsewhere. peaks: the rates of large
// products, of a copy and of an op that only reads and writes. attention: the rates of our attention, and of
// cuDNN's where it agrees with ours, for the heads of three models, with half of the pairs of positions
// counted, as cuDNN's published figures are.
// Prints a JSON object a line, of figures alone but for "name" and "what". --quick: tiny shapes. Exits as the
// programs do: 69 without a device.
#include <algorithm>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include <dlfcn.h>

#include "libcore/base/error.h"
#include "libcore/base/figures/quantile.h"
#include "libcore/base/process.h"
#include "libcore/base/text.h"
#include "libcore/ops/backend/attention_plugin.h"
#include "libcore/ops/backend/cuda_plugin.h"
#include "libcore/plan/profile/device_probe.h"
#include "tests/gpu_check/group_probe.h"

namespace megalith {
namespace {

void print(const Json& line) {
  std::cout << line.dump() << std::endl;  // at once: the process may be killed
}

/// The cuDNN that lies where the programs look for libraries. The numbers are those of cudnn_graph.h, which a
/// build need not have.
class Cudnn {
 public:
  Cudnn() {
    for (const std::string& folder : cuda_library_folders()) open(folder + "/" + kFile);
    open(kFile);  // where the dynamic linker looks
  }
  /// As in 92000 for 9.20.0; 0: there is none.
  int64_t version() const {
    return library_ == nullptr ? 0 : static_cast<int64_t>(function<size_t()>("cudnnGetVersion")());
  }
  /// What cuDNN asks a device for, as JSON. From this text cuDNN makes plans where there is no such device.
  /// Throws kDevice.
  std::string device_properties() const {
    constexpr int kDeviceProperties = 38, kDeviceId = 2700, kJson = 2702, kInt32 = 23, kChar = 24;
    constexpr int64_t kFirstVersion = 90800;
    if (library_ == nullptr)
      fail(ErrorKind::kDevice, "cuDNN: there is no ", kFile,
           " where the programs look for libraries; name its folder in MEGALITH_CUDA_LIBS");
    if (version() < kFirstVersion)
      fail(ErrorKind::kDevice, "cuDNN: version ", version(), " was found; the properties of a device need ",
           kFirstVersion, " or later");
    void* properties = nullptr;
    require(function<int(int, void**)>("cudnnBackendCreateDescriptor")(kDeviceProperties, &properties),
            "make");
    const int32_t device = 0;
    require(function<int(void*, int, int, int64_t, const void*)>("cudnnBackendSetAttribute")(
                properties, kDeviceId, kInt32, 1, &device),
            "set the device");
    require(function<int(void*)>("cudnnBackendFinalize")(properties), "ask the device");
    auto* const get = function<int(void*, int, int, int64_t, int64_t*, void*)>("cudnnBackendGetAttribute");
    int64_t length = 0;
    require(get(properties, kJson, kChar, 0, &length, nullptr), "tell the length");
    std::string json(static_cast<size_t>(length), ' ');
    require(get(properties, kJson, kChar, length, &length, json.data()), "tell the properties");
    function<int(void*)>("cudnnBackendDestroyDescriptor")(properties);
    return json.substr(0, json.find('\0'));
  }

 private:
  static constexpr const char* kFile = "libcudnn.so.9";

  /// Does nothing if a library is open already.
  void open(const std::string& path) {
    if (library_ == nullptr) library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  template <class Function>
  Function* function(const char* name) const {
    void* const found = dlsym(library_, name);
    if (found == nullptr) fail(ErrorKind::kDevice, "cuDNN: it has no ", name);
    return reinterpret_cast<Function*>(found);
  }
  static void require(int status, const char* what) {
    if (status != 0) fail(ErrorKind::kDevice, "cuDNN: cannot ", what, ": status ", status);
  }
  void* library_ = nullptr;
};

void print_facts() {
  const cuda::DeviceFacts facts = cuda_facts(0);
  print(Json(Json::Object{{"name", std::string(facts.name)},
                          {"compute_capability", facts.major + 0.1 * facts.minor},
                          {"multiprocessors", facts.multiprocessors},
                          {"memory_bytes", static_cast<int64_t>(facts.memory)},
                          {"l2_bytes", static_cast<int64_t>(facts.l2)},
                          {"ecc", facts.ecc ? 1 : 0},
                          {"clock_mhz", facts.clock_mhz},
                          {"memory_clock_mhz", facts.memory_clock_mhz},
                          {"devices", cuda_devices()},
                          {"driver_cuda", facts.driver},
                          {"runtime_cuda", facts.runtime},
                          {"cublaslt", static_cast<int64_t>(facts.cublas)},
                          {"cudnn", Cudnn().version()}}));
}

/// Sizes of what is measured.
struct Sizes {
  int64_t product, rows, columns;
  size_t copied;  // bytes
  int calls, rounds;
};
constexpr Sizes kFull = {8192, 16384, 8192, size_t{1} << 30, 20, 5}, kQuick = {64, 16, 64, 1 << 16, 1, 3};
constexpr size_t kFullOperands = size_t{2} << 30, kQuickOperands = size_t{1} << 20;  // bytes

class Peaks {
 public:
  Peaks(Backend& backend, bool quick)
      : backend_(backend),
        sizes_(quick ? kQuick : kFull),
        probe_(backend, DType::kBf16, quick ? kQuickOperands : kFullOperands),
        quick_(quick) {}

  void print_all() {
    ProfilePoint product{.kind = ProfiledKind::kProduct, .op = "forward"};
    product.rows = product.columns = product.depth = sizes_.product;
    print_rate("product", product, "tflops");
    print_copy();
    ProfilePoint rows{.kind = ProfiledKind::kMemory, .op = "gelu"};
    rows.rows = sizes_.rows;
    rows.columns = sizes_.columns;
    print_rate("gelu", rows, "gb_per_s");
  }

  void print_attention() {
    // As many heads as a micro-batch of tools/gpu_check has.
    const std::vector<Heads> all = quick_ ? std::vector<Heads>{{"quick", 32, 2, 64}}
                                          : std::vector<Heads>{{"gpt2-124m", 1024, 12 * 16, 64},
                                                               {"gpt2-1.5b", 1024, 25 * 4, 64},
                                                               {"llama-7b", 2048, 32, 128}};
    for (const Heads& heads : all) print_both("", heads);
    for (const Heads& heads : all) {
      const AttentionKind kind{
          .rows = heads.sequence, .batch = 1, .groups = heads.heads, .r = 1, .head = heads.head};
      std::string trouble = trouble_with_cudnn(backend_, kind);
      if (trouble.empty()) trouble = use_cudnn(backend_, kind);
      if (trouble.empty())
        print_both("cudnn-", heads);
      else
        print(Json(Json::Object{{"what", "cudnn"}, {"why", concat(heads.model, ": ", trouble)}}));
    }
  }

 private:
  struct Heads {
    const char* model;
    int64_t sequence, heads, head;
  };
  void print_both(const char* by, const Heads& heads) {
    for (const bool forward : {true, false}) {
      ProfilePoint point{.kind = forward ? ProfiledKind::kAttention : ProfiledKind::kAttentionGradient,
                         .op = forward ? "attention" : "attention_grad"};
      point.sequence = heads.sequence;
      point.heads = heads.heads;
      point.head = heads.head;
      print_rate(concat(by, heads.model, forward ? "-forward" : "-backward"), point, "tflops");
    }
  }
  /// The median of several rounds.
  template <class Round>
  double seconds_of(const Round& round) {
    round();
    std::vector<double> seconds;
    for (int i = 0; i < sizes_.rounds; ++i) seconds.push_back(round() / sizes_.calls);
    return quantile(seconds, 0.5);
  }
  void print_rate(const std::string& what, const ProfilePoint& point, const char* rate) {
    const double seconds = seconds_of([&] { return probe_.seconds_of(point, sizes_.calls); });
    const ProfilePoint cost = probe_.priced(point);
    const bool flops = std::string_view(rate) == "tflops";
    print_line(what, rate, flops ? cost.flops / 1e12 : cost.bytes / 1e9, seconds);
  }
  void print_copy() {
    const Memory from = backend_.allocate(sizes_.copied), to = backend_.allocate(sizes_.copied);
    Stream stream = backend_.make_stream();
    const Shape shape{static_cast<int64_t>(sizes_.copied)};
    const View source{from.data.get(), DType::kU8, shape}, target{to.data.get(), DType::kU8, shape};
    const double seconds = seconds_of([&] {
      stream.synchronize();
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < sizes_.calls; ++i) stream.copy(target, source);
      stream.synchronize();
      return seconds_since(begin);
    });
    print_line("copy", "gb_per_s", 2 * static_cast<double>(sizes_.copied) / 1e9, seconds);
  }
  static void print_line(const std::string& what, const char* rate, double work, double seconds) {
    print(Json(Json::Object{{"what", what}, {rate, work / seconds}, {"ms", 1e3 * seconds}}));
  }

  Backend& backend_;
  Sizes sizes_;
  DeviceProbe probe_;
  bool quick_;
};

void run_nccl(const std::string& ranks, bool quick) {
  constexpr int64_t kMost = 1024;
  const auto wanted = parse_int(ranks);
  if (!wanted || *wanted < 1 || *wanted > kMost)
    fail(ErrorKind::kUsage, "\"", ranks, "\" is not a number of ranks; wanted 1 to ", kMost);
  probe_nccl(static_cast<int>(*wanted), quick, print);
}

void run_peaks(const std::string& what, bool quick) {
  const std::unique_ptr<Backend> backend = make_cuda_backend(0);
  Peaks peaks(*backend, quick);
  if (what == "peaks")
    peaks.print_all();
  else
    peaks.print_attention();
}

void run_probe(std::vector<std::string> words) {
  const bool quick = words.size() > 1 && words.back() == "--quick";
  if (quick) words.pop_back();
  if (words.size() == 2 && words[0] == "nccl") return run_nccl(words[1], quick);
  if (words.size() != 1)
    fail(ErrorKind::kUsage, "wanted facts, cudnn, peaks, attention or nccl RANKS, and perhaps --quick");
  if (words[0] == "facts") return print_facts();
  if (words[0] == "peaks" || words[0] == "attention") return run_peaks(words[0], quick);
  if (words[0] != "cudnn")
    fail(ErrorKind::kUsage, "there is no \"", words[0], "\"; wanted facts, cudnn, peaks, attention or nccl");
  std::cout << Cudnn().device_properties() << '\n';
}

}  // namespace
}  // namespace megalith

int main(int count, char** words) try {
  megalith::run_probe({words + 1, words + count});
  return 0;
} catch (const megalith::Error& error) {
  std::cerr << "gpu_probe: error: " << error.what() << '\n';
  return megalith::exit_code(error.kind());
} catch (const std::exception& error) {
  std::cerr << "gpu_probe: error: " << error.what() << '\n';
  return megalith::exit_code(megalith::ErrorKind::kInternal);
}
