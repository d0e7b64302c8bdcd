#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

/// The part of cuDNN's C interface that attention needs. The numbers are those of cudnn_graph.h 9.0 to 9.19,
/// which are fixed within a major version; a build that finds the header compares them (cudnn_numbers.cpp).
/// So no build needs the header, and the emulated device's library needs none either.
namespace megalith::cuda::cudnn {

using Status = int;  // 0: success
using Handle = struct cudnnContext*;
using Stream = void*;  // a cudaStream_t
using RawDescriptor = void*;

enum DescriptorType : int {
  kPointwise = 0,
  kEngine = 2,
  kEngineConfig = 3,
  kHeuristics = 4,
  kPlan = 5,
  kPointwiseOp = 13,
  kGraph = 15,
  kVariantPack = 16,
  kTensor = 17,
  kMatmul = 18,
  kMatmulOp = 19,
  kReduction = 21,
  kReductionOp = 22,
  kReshapeOp = 31
};

enum Attribute : int {
  kPointwiseMode = 0,
  kPointwisePrecision = 1,
  kPointwiseAxis = 9,
  kHeuristicsMode = 200,
  kHeuristicsGraph = 201,
  kHeuristicsResults = 202,
  kConfigEngine = 300,
  kPlanHandle = 400,
  kPlanConfig = 401,
  kPlanWorkspace = 402,
  kPointwiseOpOf = 750,
  kPointwiseX = 751,
  kPointwiseB = 752,
  kPointwiseY = 753,
  kPointwiseT = 758,
  kGraphHandle = 800,
  kGraphOps = 801,
  kTensorAlignment = 900,
  kTensorType = 901,
  kTensorDimensions = 902,
  kTensorStrides = 903,
  kTensorId = 906,
  kTensorIsVirtual = 907,
  kTensorIsByValue = 908,
  kPackIds = 1000,
  kPackPointers = 1001,
  kPackWorkspace = 1003,
  kEngineNotes = 1303,
  kMatmulPrecision = 1500,
  kMatmulA = 1520,
  kMatmulB = 1521,
  kMatmulC = 1522,
  kMatmulOf = 1523,
  kReductionOperator = 1600,
  kReductionPrecision = 1601,
  kReductionX = 1610,
  kReductionY = 1611,
  kReductionOf = 1612,
  kReshapeX = 2200,
  kReshapeY = 2201
};

enum AttributeType : int {
  kOfHandle = 0,
  kOfDataType = 1,
  kOfBoolean = 2,
  kOfInt64 = 3,
  kOfPointer = 6,
  kOfHeuristicsMode = 8,
  kOfNote = 11,
  kOfPointwiseMode = 14,
  kOfDescriptor = 15,
  kOfReduction = 18
};

enum DataType : int { kFloat = 0, kHalf = 2, kInt32 = 4, kBfloat16 = 9, kBoolean = 11 };

enum PointwiseMode : int {
  kAdd = 0,
  kMul = 1,
  kDiv = 6,
  kSub = 9,
  kExp = 13,
  kLog = 15,
  kCompareGe = 303,
  kGenIndex = 501,
  kSelect = 601
};

enum ReductionMode : int { kSumOf = 0, kMaxOf = 3 };
enum HeuristicsKind : int { kModeA = 3 };
enum Note : int { kNondeterministic = 4 };

/// The functions of libcudnn.
struct Library {
  size_t (*get_version)();
  const char* (*error_text)(Status);
  void (*last_error)(char* text, size_t size);
  Status (*create)(Handle*);
  Status (*destroy)(Handle);
  Status (*set_stream)(Handle, Stream);
  Status (*make)(DescriptorType, RawDescriptor*);
  Status (*release)(RawDescriptor);
  Status (*set)(RawDescriptor, Attribute, AttributeType, int64_t count, const void* values);
  Status (*get)(RawDescriptor, Attribute, AttributeType, int64_t wanted, int64_t* count, void* values);
  Status (*finalize)(RawDescriptor);
  Status (*execute)(Handle, RawDescriptor plan, RawDescriptor pack);

  /// What cuDNN last said of a call, perhaps nothing.
  std::string last_words() const;
  /// What cuDNN says of a call that failed.
  std::string words(Status) const;
  std::string version() const;  // "9.19.0"
  /// Throws kDevice with cuDNN's words unless the call succeeded. `what`: what was asked of cuDNN.
  void require(Status, const char* what) const;
};

/// Tries to open libcudnn; `path` is a file, or a name that the dynamic linker finds. Once it is open it
/// stays open.
void open(const std::string& path);
/// The library that open() opened; null if it is missing, or older than 9.0, the first with one library for
/// graphs.
const Library* library();
/// Why there is no library.
std::string why_missing();

}  // namespace megalith::cuda::cudnn
