#include "tests/ops/reference.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "libcore/base/random.h"

namespace megalith::test {
namespace {
size_t at(int64_t i) {
  return static_cast<size_t>(i);
}
}  // namespace

Values reference_gemm(const GemmShape& s, const Values& a, const Values& b) {
  Values c(at(s.m * s.n), 0.0);
  for (int64_t i = 0; i < s.m; ++i)
    for (int64_t p = 0; p < s.k; ++p) {
      const double factor = s.trans_a ? a[at(p * s.m + i)] : a[at(i * s.k + p)];
      for (int64_t j = 0; j < s.n; ++j)
        c[at(i * s.n + j)] += factor * (s.trans_b ? b[at(j * s.k + p)] : b[at(p * s.n + j)]);
    }
  return c;
}

NormResult reference_norm(const NormShape& s, const Values& x, const Values& w, const Values& b) {
  const int64_t rows = static_cast<int64_t>(x.size()) / s.h;
  NormResult result{Values(x.size()), Values(at(rows)), Values(at(rows))};
  for (int64_t row = 0; row < rows; ++row) {
    const double* const in = x.data() + row * s.h;
    double mean = 0, square = 0;
    for (int64_t i = 0; i < s.h; ++i) mean += in[i] / static_cast<double>(s.h);
    if (!s.centred) mean = 0;
    for (int64_t i = 0; i < s.h; ++i) square += (in[i] - mean) * (in[i] - mean) / static_cast<double>(s.h);
    const double rstd = 1 / std::sqrt(square + s.eps);
    for (int64_t i = 0; i < s.h; ++i)
      result.y[at(row * s.h + i)] = (in[i] - mean) * rstd * w[at(i)] + (s.centred ? b[at(i)] : 0);
    result.mean[at(row)] = mean;
    result.rstd[at(row)] = rstd;
  }
  return result;
}

double reference_activation(double x, ActivationFunction function) {
  switch (function) {
    case ActivationFunction::kGeluTanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    case ActivationFunction::kGelu:
      return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
    case ActivationFunction::kQuickGelu:  // in the form of MindSpore's FastGeLU operator
      return x / (1 + std::exp(-1.702 * std::abs(x))) * std::exp(0.851 * (x - std::abs(x)));
    case ActivationFunction::kSilu:
      return x / (1 + std::exp(-x));
    case ActivationFunction::kRelu:
      return x > 0 ? x : 0;
    case ActivationFunction::kSquaredRelu:
      return x > 0 ? x * x : 0;
  }
  return 0;
}

Values reference_swiglu(const Values& x, int64_t f) {
  Values y(x.size() / 2);
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t row = i / at(f), column = i % at(f);
    const double gate = x[row * 2 * at(f) + column], up = x[row * 2 * at(f) + at(f) + column];
    y[i] = gate / (1 + std::exp(-gate)) * up;
  }
  return y;
}

double reference_mask(const MaskPlace& m) {
  if (m.p == 0) return 1;
  const uint64_t sample = static_cast<uint64_t>(m.sample);
  const std::array<uint32_t, 4> words =
      philox({static_cast<uint32_t>(m.column / 4), static_cast<uint32_t>(m.position), m.layer * 16 + m.site,
              static_cast<uint32_t>(sample)},
             {m.seed, static_cast<uint32_t>(sample >> 32)});
  const bool kept = static_cast<double>(words[at(m.column % 4)]) < (1 - m.p) * 4294967296.0;
  return kept ? 1 / (1 - m.p) : 0;
}

Values reference_rope(const HeadShape& h, const Values& qkv, const Values& cos, const Values& sin,
                      int64_t half, const RowPositions& rows) {
  Values out = qkv;
  for (int64_t position = 0; position < h.s; ++position)
    for (int64_t i = 0; i < h.b * h.groups * (h.r + 1) * half; ++i) {
      const int64_t column = i % half, slot = i / half % (h.r + 1), group = i / half / (h.r + 1) % h.groups;
      const int64_t sequence = i / half / (h.r + 1) / h.groups;
      const size_t first = at(h.qkv(position, sequence, group, slot) + column), second = first + at(half);
      const double c = cos[at(rows.at(position) * half + column)];
      const double s = sin[at(rows.at(position) * half + column)];
      out[first] = qkv[first] * c - qkv[second] * s;
      out[second] = qkv[second] * c + qkv[first] * s;
    }
  return out;
}

AttentionResult reference_attention(const HeadShape& h, const Values& qkv, double scale,
                                    const MaskFunction& mask) {
  const int64_t heads = h.groups * h.r;
  AttentionResult result{Values(at(h.out_size()), 0.0), Values(at(h.b * heads * h.s))};
  for (int64_t sequence = 0; sequence < h.b; ++sequence)
    for (int64_t head = 0; head < heads; ++head)
      for (int64_t query = 0; query < h.s; ++query) {
        const int64_t group = head / h.r;
        const double* const q = qkv.data() + h.qkv(query, sequence, group, head % h.r);
        Values p;
        for (int64_t key = 0; key <= query; ++key)
          p.push_back(scale * std::transform_reduce(q, q + h.head,
                                                    qkv.data() + h.qkv(key, sequence, group, h.r), 0.0));
        const double top = *std::max_element(p.begin(), p.end());
        double sum = 0;
        for (const double score : p) sum += std::exp(score - top);
        const double lse = top + std::log(sum);
        result.lse[at((sequence * heads + head) * h.s + query)] = lse;
        for (int64_t key = 0; key <= query; ++key) {
          const double weight = std::exp(p[at(key)] - lse) * (mask ? mask(sequence, head, query, key) : 1.0);
          const double* const v = qkv.data() + h.qkv(key, sequence, group, h.r + 1);
          double* const out = result.out.data() + h.out(query, sequence, head);
          for (int64_t d = 0; d < h.head; ++d) out[d] += weight * v[d];
        }
      }
  return result;
}

double reference_nll(const double* logits, int64_t columns, int64_t target) {
  const double top = *std::max_element(logits, logits + columns);
  double sum = 0;
  for (int64_t i = 0; i < columns; ++i) sum += std::exp(logits[i] - top);
  return std::log(sum) + top - logits[target];
}

Values numeric_gradient(const std::function<double(const Values&)>& f, Values x,
                        const std::vector<size_t>& places) {
  // For smooth f, the error of differences is about 1e-10 and that of rounding 1e-11.
  constexpr double kStep = 1e-5;
  Values gradient;
  for (const size_t i : places) {
    const double kept = x[i];
    x[i] = kept + kStep;
    const double above = f(x);
    x[i] = kept - kStep;
    gradient.push_back((above - f(x)) / (2 * kStep));
    x[i] = kept;
  }
  return gradient;
}

}  // namespace megalith::test
