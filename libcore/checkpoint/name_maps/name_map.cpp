#include "libcore/checkpoint/name_maps/name_map.h"

#include <algorithm>
#include <cstring>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

bool repeats(const NameRow& row) {
  return std::strchr(row.ours, '#') != nullptr;
}

bool is_present(Presence presence, const ModelConfig& config) {
  switch (presence) {
    case Presence::kAlways:
      return true;
    case Presence::kUntiedHead:
      return config.untied_head;
    case Presence::kQkvBias:
      return config.has_qkv_bias();
    case Presence::kLinearBias:
      return config.linear_bias;
    case Presence::kHeadNorms:
      return config.qk_layernorm && !config.qk_norm_all_heads;
    case Presence::kAllHeadNorms:
      return config.qk_layernorm && config.qk_norm_all_heads;
    case Presence::kSecondNorm:
      return config.has_second_norm();
    case Presence::kSecondNormBias:
      return config.has_second_norm() && config.norm == Normalization::kLayerNorm;
    case Presence::kNormBias:
      return config.norm == Normalization::kLayerNorm;
  }
  return false;
}

bool is_bias(const NameRow& row) {
  return row.presence == Presence::kQkvBias || row.presence == Presence::kLinearBias;
}

Shape shape_of(const NameRow& row, const ModelConfig& config) {
  Shape shape;
  shape.rank = static_cast<int>(row.shape.size());
  for (int axis = 0; axis < shape.rank; ++axis)
    shape[axis] = extent_of(row.shape[static_cast<size_t>(axis)], config);
  return shape;
}

// One of our tensors as a matrix. A vector (bias, norm) has one column.
struct Matrix {
  int64_t rows, columns;
};
Matrix matrix_of(const NameRow& row, const Shape& shape) {
  if (shape.rank == 1 || is_bias(row)) return {shape.elements(), 1};
  return {shape.rows(), shape.back()};
}

// Appends the runs of one kind (0 query, 1 key, 2 value) of our packed QKV {groups, heads + 2, head, …}. In
// the other format, these rows begin at row `to`.
void append_qkv_runs(std::vector<RowRun>& runs, const Shape& packed, int kind, int64_t to) {
  const int64_t groups = packed[0], in_group = packed[1], head = packed[2];
  const int64_t first = kind == 0 ? 0 : in_group - 3 + kind, rows = (kind == 0 ? in_group - 2 : 1) * head;
  for (int64_t group = 0; group < groups; ++group)
    runs.push_back({(group * in_group + first) * head, to + group * rows, rows});
}

int64_t qkv_rows(const Shape& packed, int kind) {
  return packed[0] * packed[2] * (kind == 0 ? packed[1] - 2 : 1);
}

std::vector<RowRun> runs_of(const NameRow& row, const Shape& shape, size_t part) {
  std::vector<RowRun> runs;
  const int64_t rows = matrix_of(row, shape).rows;
  switch (row.transform) {
    case Transform::kCopy:
    case Transform::kTranspose:
      return {{0, 0, rows}};
    case Transform::kSplitGateUp:
      return {{static_cast<int64_t>(part) * (rows / 2), 0, rows / 2}};
    case Transform::kSplitQkv:
      append_qkv_runs(runs, shape, static_cast<int>(part), 0);
      return runs;
    case Transform::kJoinQkv:
    case Transform::kStackQkv: {
      int64_t at = 0;
      for (const int kind : {0, 1, 2}) {
        append_qkv_runs(runs, shape, kind, at);
        at += qkv_rows(shape, kind);
      }
      return runs;
    }
  }
  return runs;
}

int64_t rows_of(const std::vector<RowRun>& runs) {
  int64_t rows = 0;
  for (const RowRun& run : runs) rows += run.rows;
  return rows;
}

bool is_transposed(const NameRow& row, int64_t columns) {
  return columns > 1 && (row.transform == Transform::kTranspose || row.transform == Transform::kJoinQkv);
}

Shape their_shape(const NameRow& row, const Shape& ours, size_t part) {
  const int64_t rows = rows_of(runs_of(row, ours, part)), columns = matrix_of(row, ours).columns;
  if (columns == 1) return {rows};
  return is_transposed(row, columns) ? Shape{columns, rows} : Shape{rows, columns};
}

RenamedTensor renamed(const NameMap& map, const NameRow& row, const ModelConfig& config, int layer) {
  RenamedTensor out{.row = &row,
                    .layer = layer,
                    .ours = with_layer(row.ours, layer),
                    .shape = shape_of(row, config),
                    .absent = !is_present(row.presence, config),
                    .theirs = {}};
  for (size_t part = 0; part < row.theirs.size(); ++part) {
    const bool head = row.presence == Presence::kUntiedHead;
    out.theirs.push_back(
        {(head ? "" : map.prefix) + with_layer(row.theirs[part], layer), their_shape(row, out.shape, part)});
  }
  return out;
}

void append_if_any(std::vector<RenamedTensor>& out, const NameMap& map, const NameRow& row,
                   const ModelConfig& config, int layer) {
  if (is_present(row.presence, config) || (map.always_biased && is_bias(row)))
    out.push_back(renamed(map, row, config, layer));
}

}  // namespace

std::string with_layer(std::string name, int layer) {
  if (const size_t at = name.find('#'); at != std::string::npos) name.replace(at, 1, std::to_string(layer));
  return name;
}

int64_t extent_of(Dim dim, const ModelConfig& config) {
  switch (dim) {
    case Dim::kVocab:
      return config.vocab_size;
    case Dim::kPositions:
      return config.max_positions;
    case Dim::kHidden:
      return config.hidden;
    case Dim::kFfn:
      return config.ffn_hidden;
    case Dim::kTwo:
      return 2;
    case Dim::kGroups:
      return config.kv_heads();
    case Dim::kGroupHeads:
      return config.heads / config.kv_heads() + 2;
    case Dim::kHead:
      return config.kv_channels;
    case Dim::kHeadsWidth:
      return int64_t{config.heads} * config.kv_channels;
    case Dim::kKeysWidth:
      return int64_t{config.kv_heads()} * config.kv_channels;
  }
  return 0;
}

const char* head_name(const NameMap& map) {
  const auto head = std::find_if(map.rows.begin(), map.rows.end(),
                                 [](const NameRow& row) { return row.presence == Presence::kUntiedHead; });
  if (head == map.rows.end()) fail(ErrorKind::kInternal, "no name of a head for ", map.architecture);
  return head->theirs.front();
}

std::vector<RenamedTensor> renamed_tensors(const NameMap& map, const ModelConfig& config) {
  std::vector<RenamedTensor> out;
  const auto first = std::find_if(map.rows.begin(), map.rows.end(), repeats);
  const auto last = std::find_if_not(first, map.rows.end(), repeats);
  for (auto row = map.rows.begin(); row != first; ++row) append_if_any(out, map, *row, config, 0);
  for (int layer = 0; layer < config.layers; ++layer)
    for (auto row = first; row != last; ++row) append_if_any(out, map, *row, config, layer);
  for (auto row = last; row != map.rows.end(); ++row) append_if_any(out, map, *row, config, 0);
  return out;
}

int64_t PartRows::rows() const {
  return rows_of(runs);
}

PartRows part_rows(const RenamedTensor& renamed, size_t part) {
  const int64_t columns = matrix_of(*renamed.row, renamed.shape).columns;
  return {.runs = runs_of(*renamed.row, renamed.shape, part),
          .columns = columns,
          .transposed = is_transposed(*renamed.row, columns)};
}

}  // namespace megalith
