#include "libcore/checkpoint/loss_history.h"

#include <cmath>

#include "libcore/base/error.h"

namespace megalith {
namespace {

Json points_json(const ChartPoints& points) {
  Json::Array out;
  for (const auto& [iteration, loss] : points) out.push_back(Json::Array{iteration, loss});
  return out;
}

ChartPoints points_of(const Json& json) {
  ChartPoints points;
  for (const Json& point : json.as_array()) {
    const Json::Array& pair = point.as_array();
    if (pair.size() != 2) fail(ErrorKind::kData, "a loss is ", point.dump(), ", wanted [iteration, loss]");
    points[pair[0].as_int()] = pair[1].as_double();
  }
  return points;
}

}  // namespace

void LossHistory::add_train(int64_t iteration, double loss) {
  if (!std::isfinite(loss) || iteration % every_ != 0) return;
  train_[iteration] = loss;
  if (train_.size() <= kMaxLosses) return;
  every_ *= 2;
  std::erase_if(train_, [&](const auto& point) { return point.first % every_ != 0; });
}

void LossHistory::add_valid(int64_t iteration, double loss) {
  if (std::isfinite(loss)) valid_[iteration] = loss;
}

Json LossHistory::to_json() const {
  return Json::Object{{"every", every_}, {"train", points_json(train_)}, {"valid", points_json(valid_)}};
}

LossHistory LossHistory::from_json(const Json& json) {
  LossHistory out;
  out.every_ = json["every"].as_int();
  if (out.every_ < 1)
    fail(ErrorKind::kData, "losses are kept of every ", out.every_, " iterations, wanted 1 or more");
  out.train_ = points_of(json["train"]);
  out.valid_ = points_of(json["valid"]);
  return out;
}

}  // namespace megalith
