#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "libcore/json/json.h"
#include "libcore/ops/op.h"
#include "libcore/tensor/device.h"
#include "libcore/tensor/view.h"

namespace megalith {

/// What the machine reaches at best, measured: the roofs of Williams, Waterman and Patterson's model (2009).
struct Roofs {
  double flops = 0;  // a second, in a matrix product
  double bytes = 0;  // a second, in reading a matrix
};

/// A product of the size of a model's, and one of its matrices.
struct RoofShapes {
  int64_t rows = 0, in = 0, out = 0;  // of x [rows, in] times w [out, in]
  DType dtype = DType::kF32;
  ConstView matrix = {};  // [n, k], in the backend's memory; only read
};
/// Takes the best of five products and of five readings (a product of one row) on a CPU's stream, and needs
/// memory for x, w, their product and a row of `matrix` meanwhile. Without a matrix Roofs::bytes is 0.
Roofs measure_roofs(Stream&, const RoofShapes&);

/// What the ops of some steps took, for the log and for the file of --trace.
struct OpTable {
  struct Row {
    std::string op;
    double calls = 0, ms = 0;          // in a step
    double gflops = 0, gigabytes = 0;  // a second
    double share = 0;                  // of the roof: the least time that the roofs allow / the time
  };
  Roofs roofs;
  std::vector<Row> rows;  // the longest first

  OpTable() = default;
  /// `ops`: of `steps` steps. A roof that is 0 limits nothing.
  OpTable(const std::map<std::string, Trace::Entry>& ops, const Roofs&, int64_t steps);
  /// A heading and a table of lines.
  std::string text() const;
};
Json to_json(const OpTable&);

}  // namespace megalith
