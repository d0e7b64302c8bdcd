#include "libcore/convert/output/check.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/process.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/views/rows.h"
#include "libcore/convert/output/kernels_products.h"
#include "libcore/convert/output/recipe.h"
#include "libcore/io/streams/stop_signal.h"
#include "libcore/model/rotary/rotary.h"
#include "libcore/threads/beside.h"

namespace megalith {
namespace {

constexpr int64_t kTokens = 8;
// number of elements of a weight that are used at a time, so that they stay in the nearest cache
constexpr int64_t kCheckedElements = int64_t{1} << 17;

using Floats = std::vector<float>;

// A matrix [rows, columns]. Rows of zeros are added at its end, so that the kernels see whole groups of
// tokens.
struct Matrix {
  int64_t rows, columns;
  Floats values;
  Matrix(int64_t r, int64_t c)
      : rows(r),
        columns(c),
        values(static_cast<size_t>((r + kProductTokens - 1) / kProductTokens * kProductTokens * c)) {}
  float* row(int64_t r) { return values.data() + r * columns; }
  const float* row(int64_t r) const { return values.data() + r * columns; }
};

struct Weights {
  const float* values;
  int64_t rows, columns;
};

// Adds to y the product of w and the columns of x from `first` on.
void add_products(Matrix& y, const Matrix& x, int64_t first, const Weights& w,
                  void (*kernel)(const Products&)) {
  for (int64_t t = 0; t < x.rows; t += kProductTokens)
    kernel({.y = y.row(t),
            .y_stride = y.columns,
            .x = x.row(t) + first,
            .x_stride = x.columns,
            .w = w.values,
            .rows = w.rows,
            .columns = w.columns});
}

void add(Matrix& x, const Matrix& branch, double factor = 1) {
  const auto f = static_cast<float>(factor);
  for (size_t i = 0; i < x.values.size(); ++i) x.values[i] += f * branch.values[i];
}

// Normalizes a row in place.
void norm_row(std::span<float> row, const Floats& weight, const Floats& bias, const ModelConfig& config) {
  const auto n = static_cast<double>(row.size());
  double mean = 0, square = 0;
  if (config.norm == Normalization::kLayerNorm)
    for (const float x : row) mean += x / n;
  for (const float x : row) square += (x - mean) * (x - mean) / n;
  const double scale = 1 / std::sqrt(square + config.norm_epsilon);
  for (size_t i = 0; i < row.size(); ++i)
    row[i] = static_cast<float>((row[i] - mean) * scale) * weight[i] + bias[i];
}

class Forward {
 public:
  // For one text, of `tokens` tokens: rotations may depend on that.
  Forward(const ModelView& view, const CheckRun& run, size_t tokens)
      : view_(view), config_(view.config), run_(run) {
    config_.seq_length = static_cast<int>(tokens);
    if (config_.position == PositionEmbedding::kRope) rotation_ = rotation_of(config_);
  }

  // Returns the logits; empty if the run was stopped.
  Floats logits(std::span<const int32_t> tokens);

 private:
  Matrix embed(std::span<const int32_t> tokens);
  void layer(Matrix& x, int number);
  Matrix normed(const Matrix& x, const std::array<std::string, 2>& names) const;
  void norm_heads(Matrix& qkv, const LayerView& names) const;
  Matrix linear(const Matrix& x, const std::vector<Product>& products);
  void multiply(Matrix& y, const Matrix& x, const Product& product);
  void multiply_rows(Matrix& y, Matrix& all, const Matrix& x, const Product& product,
                     const MatrixBlock& block);
  void place(Matrix& y, const Matrix& part, const Product& product, int64_t first) const;
  void rotate(float* head, int64_t position) const;
  Matrix attention(Matrix qkv, int layer) const;
  Matrix activated(const Matrix& x) const;
  Floats vector(const std::string& name) const;
  std::array<Floats, 2> norm_vectors(const std::array<std::string, 2>& names) const;

  const ModelView& view_;
  ModelConfig config_;
  Rotation rotation_;
  const CheckRun& run_;
};

Floats Forward::vector(const std::string& name) const {
  const Shape shape = view_.file->at(name).shape();
  Floats values(static_cast<size_t>(shape.elements()));
  view_.file->read(Box::whole(name, shape), {values.data(), DType::kF32, shape});
  return values;
}

// A norm's weight and bias; zeros if it has no bias.
std::array<Floats, 2> Forward::norm_vectors(const std::array<std::string, 2>& names) const {
  Floats weight = vector(names[0]);
  Floats bias = names[1].empty() ? Floats(weight.size()) : vector(names[1]);
  return {std::move(weight), std::move(bias)};
}

Matrix Forward::embed(std::span<const int32_t> tokens) {
  Matrix x(static_cast<int64_t>(tokens.size()), config_.hidden);
  const auto read_row = [&](const std::string& name, int64_t row, float* to) {
    const Shape shape = view_.file->at(name).shape();
    view_.file->read({name, shape, {row, 0}}, {to, DType::kF32, {1, config_.hidden}});
  };
  Floats position(static_cast<size_t>(config_.hidden));
  for (int64_t t = 0; t < x.rows; ++t) {
    read_row(view_.words, tokens[static_cast<size_t>(t)], x.row(t));
    if (view_.positions.empty()) continue;
    read_row(view_.positions, t, position.data());
    for (int64_t i = 0; i < x.columns; ++i) x.row(t)[i] += position[static_cast<size_t>(i)];
  }
  for (float& value : x.values) value *= static_cast<float>(config_.embedding_multiplier);
  return x;
}

// x itself, if there is no such norm.
Matrix Forward::normed(const Matrix& x, const std::array<std::string, 2>& names) const {
  if (names[0].empty()) return x;
  const auto [weight, bias] = norm_vectors(names);
  Matrix y = x;
  for (int64_t t = 0; t < y.rows; ++t)
    norm_row({y.row(t), static_cast<size_t>(y.columns)}, weight, bias, config_);
  return y;
}

// The norms of the queries and keys in qkv [tokens, queries | keys | values], each head by itself or all
// heads together.
void Forward::norm_heads(Matrix& qkv, const LayerView& names) const {
  const auto each = [&](const std::array<std::string, 2>& norm, int begin, int end) {
    if (norm[0].empty()) return;
    const auto [weight, bias] = norm_vectors(norm);
    const int heads = config_.qk_norm_all_heads ? end - begin : 1;
    const auto width = static_cast<size_t>(heads) * static_cast<size_t>(config_.kv_channels);
    for (int64_t t = 0; t < qkv.rows; ++t)
      for (int h = begin; h < end; h += heads)
        norm_row({qkv.row(t) + int64_t{h} * config_.kv_channels, width}, weight, bias, config_);
  };
  each(names.query_norm, 0, config_.heads);
  each(names.key_norm, config_.heads, config_.heads + config_.kv_heads());
}

// Copies the columns of `part` to their places in y. Column i of `part` is the result of the weight's stored
// row first + i.
void Forward::place(Matrix& y, const Matrix& part, const Product& product, int64_t first) const {
  for (const RowRun& run : product.runs) {
    const int64_t begin = std::max(run.ours, first),
                  end = std::min(run.ours + run.rows, first + part.columns);
    for (int64_t row = begin; row < end; ++row)
      for (int64_t t = 0; t < y.rows; ++t) y.row(t)[run.theirs + row - run.ours] = part.row(t)[row - first];
  }
}

// Multiplies x by a block of stored rows of the weight. If the weight is transposed, each stored row
// contributes to every result, so the sums go into `all`. Otherwise each stored row gives one result, which
// goes into y.
void Forward::multiply_rows(Matrix& y, Matrix& all, const Matrix& x, const Product& product,
                            const MatrixBlock& block) {
  const int64_t step = std::max<int64_t>(1, kCheckedElements / block.columns);
  Floats weights(static_cast<size_t>(std::min(step, block.rows) * block.columns));
  for (int64_t row = block.row; row < block.end(); row += step) {
    const int64_t n = std::min(step, block.end() - row), columns = block.columns;
    read_matrix(*view_.file, product.weight, {product.shape}, {row, n, 0, columns},
                {weights.data(), DType::kF32, {n, columns}});
    if (product.transposed) {
      add_products(all, x, row, {weights.data(), n, columns}, add_transposed_products);
      continue;
    }
    Matrix out(x.rows, n);
    add_products(out, x, 0, {weights.data(), n, columns}, add_row_products);
    place(y, out, product, row);
  }
}

void Forward::multiply(Matrix& y, const Matrix& x, const Product& product) {
  const MatrixForm form{product.shape};
  const int64_t rows = form.rows(), share = (rows + run_.threads - 1) / run_.threads;
  std::vector<Matrix> sums(static_cast<size_t>(run_.threads),
                           {x.rows, product.transposed ? form.columns() : 1});
  run_beside(static_cast<size_t>(rows == 0 ? 0 : (rows + share - 1) / share), [&](size_t i) {
    const int64_t begin = static_cast<int64_t>(i) * share;
    multiply_rows(y, sums[i], x, product, {begin, std::min(share, rows - begin), 0, form.columns()});
  });
  if (!product.transposed) return;
  for (size_t i = 1; i < sums.size(); ++i) add(sums[0], sums[i]);
  place(y, sums[0], product, 0);
}

Matrix Forward::linear(const Matrix& x, const std::vector<Product>& products) {
  int64_t columns = 0;
  for (const Product& product : products)
    for (const RowRun& run : product.runs) columns = std::max(columns, run.theirs + run.rows);
  Matrix y(x.rows, columns);
  for (const Product& product : products) {
    multiply(y, x, product);
    if (product.bias.empty()) continue;
    const Floats bias = vector(product.bias);
    for (const RowRun& run : product.runs)
      for (int64_t row = 0; row < run.rows; ++row)
        for (int64_t t = 0; t < y.rows; ++t)
          y.row(t)[run.theirs + row] += bias[static_cast<size_t>(run.ours + row)];
  }
  return y;
}

void Forward::rotate(float* head, int64_t position) const {
  const auto half = static_cast<int64_t>(rotation_.frequencies.size());
  for (int64_t j = 0; j < half; ++j) {
    const double angle = static_cast<float>(position) * rotation_.frequencies[static_cast<size_t>(j)];
    float& a = head[view_.neighbours ? 2 * j : j];
    float& b = head[view_.neighbours ? 2 * j + 1 : half + j];
    const auto cosine = static_cast<float>(std::cos(angle)) * rotation_.magnitude,
               sine = static_cast<float>(std::sin(angle)) * rotation_.magnitude;
    const float turned = a * cosine - b * sine;
    b = b * cosine + a * sine;
    a = turned;
  }
}

// Attention: qkv [tokens, queries | keys | values] -> [tokens, heads * head], causal and within the window.
Matrix Forward::attention(Matrix qkv, int layer) const {
  const int64_t head = config_.kv_channels, heads = config_.heads, groups = config_.kv_heads();
  const int64_t key = heads * head, value = key + groups * head;
  const int64_t window = config_.window_of(layer);
  if (config_.rotates(layer))
    for (int64_t t = 0; t < qkv.rows; ++t)
      for (int64_t h = 0; h < heads + groups; ++h) rotate(qkv.row(t) + h * head, t);
  Matrix out(qkv.rows, heads * head);
  std::vector<double> weight(static_cast<size_t>(qkv.rows));
  for (int64_t h = 0; h < heads; ++h) {
    const int64_t group = h / (heads / groups) * head;
    for (int64_t t = 0; t < qkv.rows; ++t) {
      double sum = 0, top = -std::numeric_limits<double>::infinity();
      const int64_t first = window > 0 ? std::max<int64_t>(0, t + 1 - window) : 0;
      for (int64_t s = first; s <= t; ++s) {
        double dot = 0;
        for (int64_t i = 0; i < head; ++i)
          dot += double{qkv.row(t)[h * head + i]} * qkv.row(s)[key + group + i];
        weight[static_cast<size_t>(s)] = dot * config_.attention_scale();
        top = std::max(top, weight[static_cast<size_t>(s)]);
      }
      for (int64_t s = first; s <= t; ++s)
        sum += weight[static_cast<size_t>(s)] = std::exp(weight[static_cast<size_t>(s)] - top);
      for (int64_t s = first; s <= t; ++s)
        for (int64_t i = 0; i < head; ++i)
          out.row(t)[h * head + i] +=
              static_cast<float>(weight[static_cast<size_t>(s)] / sum) * qkv.row(s)[value + group + i];
    }
  }
  return out;
}

float activation_at(float x, ActivationFunction function) {
  switch (function) {
    case ActivationFunction::kGeluTanh:
      return 0.5F * x * (1 + std::tanh(0.7978845608F * (x + 0.044715F * x * x * x)));
    case ActivationFunction::kGelu:
      return 0.5F * x * (1 + std::erf(x * static_cast<float>(M_SQRT1_2)));
    case ActivationFunction::kQuickGelu:
      return x / (1 + std::exp(-1.702F * x));
    case ActivationFunction::kSilu:
      return x / (1 + std::exp(-x));
    case ActivationFunction::kRelu:
      return std::max(x, 0.0F);
    case ActivationFunction::kSquaredRelu:
      return std::max(x, 0.0F) * std::max(x, 0.0F);
  }
  fail(ErrorKind::kInternal, "an activation without a formula");
}

Matrix Forward::activated(const Matrix& x) const {
  const ActivationFunction function = config_.activation();
  const bool gated = config_.swiglu;
  Matrix y(x.rows, gated ? x.columns / 2 : x.columns);
  for (int64_t t = 0; t < x.rows; ++t)
    for (int64_t i = 0; i < y.columns; ++i) {
      const float v = activation_at(x.row(t)[i], function);
      y.row(t)[i] = gated ? v * x.row(t)[y.columns + i] : v;
    }
  return y;
}

void Forward::layer(Matrix& x, int number) {
  const LayerView& names = view_.layers[static_cast<size_t>(number)];
  const Matrix read = normed(x, names.norm1);
  Matrix qkv = linear(read, names.qkv);
  norm_heads(qkv, names);
  const Matrix attended = normed(linear(attention(std::move(qkv), number), names.proj), names.after1);
  const bool parallel = config_.parallel_residual;
  if (!parallel) add(x, attended, config_.residual_multiplier);
  const bool shared = parallel && names.norm2[0].empty();
  const Matrix fed = linear(activated(linear(shared ? read : normed(x, names.norm2), names.fc1)), names.fc2);
  if (parallel) add(x, attended, config_.residual_multiplier);
  add(x, normed(fed, names.after2), config_.residual_multiplier);
}

Floats Forward::logits(std::span<const int32_t> tokens) {
  Matrix x = embed(tokens);
  for (size_t i = 0; i < view_.layers.size(); ++i) {
    stop_if_asked();
    if (run_.stop && *run_.stop) return {};
    layer(x, static_cast<int>(i));
  }
  const Shape head = view_.file->at(view_.head).shape();
  Floats logits = linear(normed(x, view_.final_norm),
                         {{.weight = view_.head, .shape = head, .runs = {{0, 0, config_.vocab_size}}}})
                      .values;
  logits.resize(tokens.size() * static_cast<size_t>(config_.vocab_size));
  for (float& logit : logits) logit /= static_cast<float>(config_.logits_scaling);
  return logits;
}

// Tokens spread over the vocabulary, equal in every run.
std::vector<int32_t> some_tokens(const ModelConfig& config) {
  const int64_t max_tokens = config.position == PositionEmbedding::kLearned ? config.max_positions : kTokens;
  std::vector<int32_t> tokens;
  uint64_t state = 1;
  for (int64_t t = 0; t < std::min(kTokens, max_tokens); ++t) {
    state = state * 6364136223846793005U + 1442695040888963407U;  // Knuth's MMIX generator
    tokens.push_back(static_cast<int32_t>((state >> 33) % static_cast<uint64_t>(config.vocab_size)));
  }
  return tokens;
}

}  // namespace

std::vector<float> logits_of(const ModelView& view, std::span<const int32_t> tokens, const CheckRun& run) {
  return Forward(view, run, tokens.size()).logits(tokens);
}

CheckedSide checked_side(const ModelView& view, const CheckRun& run) {
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<int32_t> tokens = some_tokens(view.config);
  CheckedSide side{.path = view.file->path(),
                   .logits = logits_of(view, tokens, run),
                   .tokens = static_cast<int64_t>(tokens.size()),
                   .begin = begin};
  side.finite = std::all_of(side.logits.begin(), side.logits.end(), [](float x) { return std::isfinite(x); });
  side.end = std::chrono::steady_clock::now();
  return side;
}

namespace {
/// The seconds in which one of the models or both were run: the source may be run while the result is
/// written, or after both are there.
double passed_seconds(const CheckedSide& a, const CheckedSide& b) {
  using Seconds = std::chrono::duration<double>;
  const Seconds both = std::min(a.end, b.end) - std::max(a.begin, b.begin);
  return (Seconds(a.end - a.begin) + Seconds(b.end - b.begin) - std::max(both, Seconds(0))).count();
}
}  // namespace

Comparison compare_sides(const CheckedSide& a, const CheckedSide& b) {
  if (a.logits.size() != b.logits.size())
    fail(ErrorKind::kInternal, "the models give ", a.logits.size(), " and ", b.logits.size(), " logits");
  Comparison out{.tokens = a.tokens, .seconds = passed_seconds(a, b), .peak_bytes = peak_memory()};
  for (size_t i = 0; i < a.logits.size(); ++i) {
    const bool known = std::isfinite(a.logits[i]), other = std::isfinite(b.logits[i]);
    if (known != other) out.max_difference = std::numeric_limits<double>::infinity();
    if (!known || !other) continue;
    ++out.compared;
    out.max_difference = std::max(out.max_difference, std::abs(double{a.logits[i]} - b.logits[i]));
    out.max_logit = std::max(out.max_logit, std::abs(double{a.logits[i]}));
  }
  return out;
}

namespace {

bool is_plain_float(const StoredTensor& tensor) {
  constexpr std::array kFloats = {DType::kF32, DType::kBf16, DType::kF16, DType::kF64};
  return tensor.dtype && std::find(kFloats.begin(), kFloats.end(), *tensor.dtype) != kFloats.end();
}

}  // namespace

std::string first_not_finite(const TensorFile& file) {
  constexpr int64_t kAtOnce = int64_t{1} << 20;
  std::vector<float> values;
  for (const StoredTensor& tensor : file.tensors()) {
    if (!is_plain_float(tensor)) continue;
    const Shape shape = tensor.shape();
    const int64_t rows = shape[0], width = rows > 0 ? shape.elements() / rows : 0;
    const int64_t step = std::max<int64_t>(1, kAtOnce / std::max<int64_t>(width, 1));
    for (int64_t row = 0; row < rows; row += step) {
      Box box = Box::whole(tensor.name, shape);
      box.offset[0] = row;
      Shape part = shape;
      part[0] = std::min(step, rows - row);
      values.resize(static_cast<size_t>(part.elements()));
      file.read(box, {values.data(), DType::kF32, part});
      const auto bad = std::find_if(values.begin(), values.end(), [](float x) { return !std::isfinite(x); });
      if (bad != values.end())
        return concat("tensor ", quote(tensor.name), " holds ", *bad, " at element ",
                      row * width + (bad - values.begin()));
    }
  }
  return {};
}

std::string text_of(const Comparison& comparison) {
  const std::string cost = concat("; ", format_duration(comparison.seconds), ", ",
                                  format_bytes(static_cast<double>(comparison.peak_bytes)), " peak memory");
  if (comparison.compared == 0)
    return concat("check: no logit of ", comparison.tokens,
                  " tokens is finite in both models; nothing was compared", cost);
  return concat("check: max difference of the logits of ", comparison.tokens, " tokens ",
                format_scientific(comparison.max_difference, 1), ", max logit ",
                format_fixed(comparison.max_logit, 2), cost);
}

}  // namespace megalith
