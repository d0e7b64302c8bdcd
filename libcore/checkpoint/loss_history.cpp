#include "libcore/checkpoint/loss_history.h"

#include <cmath>

#include "libcore/base/error.h"
#include "libcore/json/json_fields.h"
#include "libcore/json/json_names.h"

namespace megalith {

Json LossPoints::to_json() const {
  Json::Array out;
  for (const auto& [iteration, loss] : points) out.push_back(Json::Array{iteration, loss});
  return out;
}

void LossPoints::take(const Json& json) {
  points.clear();
  for (const Json& point : json.as_array()) {
    const Json::Array& pair = point.as_array();
    if (pair.size() != 2 || pair[0].as_int() < 0)
      fail(ErrorKind::kData, JsonNames::of(point), " is ", point.dump(), ", wanted [iteration, loss]");
    points[pair[0].as_int()] = pair[1].as_double();
  }
}

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
  Json json = Json::object();
  add_fields(json, *this);
  return json;
}

LossHistory LossHistory::from_json(const Json& json, const std::string& where) {
  const JsonNames names(json, where);
  auto out = read_fields<LossHistory>(json);
  if (out.every_ < 1)
    fail(ErrorKind::kData, where, ": losses are kept of every ", out.every_, " iterations, wanted 1 or more");
  return out;
}

}  // namespace megalith
