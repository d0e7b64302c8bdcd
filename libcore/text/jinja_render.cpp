#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/text/jinja_renderer.h"
#include "libcore/text/jinja_text.h"

namespace megalith::jinja {
namespace {

constexpr int64_t kMostSteps = 2'000'000;  // of a template that never ends

}  // namespace

void Renderer::refuse(int line, const std::string& what) const {
  fail(ErrorKind::kData, name_, ": chat template, line ", line, ": ", what);
}

const std::string& Renderer::text_of(const Value& value, int line, const std::string& what) const {
  if (!is_text(value)) refuse(line, concat(what, " of ", kind_of(value), ", wanted a text"));
  return json_of(value)->as_string();
}

int64_t Renderer::integer_of(const Value& value, int line, const std::string& what) const {
  const Json* json = json_of(value);
  if (json == nullptr || !json->is_int())
    refuse(line, concat(what, " of ", kind_of(value), ", wanted an integer"));
  return json->as_int();
}

void Renderer::count_step(int line) {
  if (++steps_ > kMostSteps || out_.size() > kMostText) refuse(line, "the template does not come to an end");
}

Renderer::Flow Renderer::execute(const std::vector<Node>& nodes) {
  for (const Node& node : nodes) {
    const Flow flow = execute(node);
    if (flow != Flow::kOn) return flow;
  }
  return Flow::kOn;
}

Renderer::Flow Renderer::execute(const Node& node) {
  count_step(node.line);
  switch (node.kind) {
    case Node::kText:
      out_ += node.text;
      return Flow::kOn;
    case Node::kOutput:
      out_ += printed(eval(node.exprs[0]), node.line);
      return Flow::kOn;
    case Node::kSet:
      set(node, eval(node.exprs[0]));
      return Flow::kOn;
    case Node::kSetBlock:
      return capture(node);
    case Node::kIf:
      return choose(node);
    case Node::kFor:
      return loop(node);
    case Node::kBreak:
      return Flow::kBreak;
    case Node::kContinue:
      return Flow::kContinue;
    case Node::kGroup:
      return execute(node.bodies[0]);
  }
  return Flow::kOn;
}

void Renderer::set(const Node& node, Value value) {
  if (node.names.size() == 1) {
    scopes_.back()[node.names[0]] = std::move(value);
    return;
  }
  const Value target = look_up(node.names[0]);
  const Namespace* space = std::get_if<Namespace>(&target);
  if (space == nullptr)
    refuse(node.line, concat(quote(node.names[0]), " is no namespace, so it has no member to set"));
  const Json* json = json_of(value);
  if (json == nullptr) refuse(node.line, concat("a namespace cannot hold ", kind_of(value)));
  (**space)[node.names[1]] = *json;
}

Renderer::Flow Renderer::capture(const Node& node) {
  std::string before = std::exchange(out_, {});
  const Flow flow = execute(node.bodies[0]);
  std::string made = std::exchange(out_, std::move(before));
  set(node, Json(std::move(made)));
  return flow;
}

Renderer::Flow Renderer::choose(const Node& node) {
  for (size_t i = 0; i < node.exprs.size(); ++i)
    if (truth(eval(node.exprs[i]))) return execute(node.bodies[i]);
  return node.bodies.size() > node.exprs.size() ? execute(node.bodies.back()) : Flow::kOn;
}

void Renderer::bind(const Node& node, const Json& entry) {
  if (node.names.size() == 1) {
    scopes_.back()[node.names[0]] = entry;
    return;
  }
  if (!entry.is_array() || entry.as_array().size() != node.names.size())
    refuse(node.line, concat("cannot take ", node.names.size(), " variables from ", kind_of(entry)));
  for (size_t i = 0; i < node.names.size(); ++i) scopes_.back()[node.names[i]] = entry.as_array()[i];
}

Json::Array Renderer::loop_entries(const Node& node) {
  Json::Array all = entries(eval(node.exprs[0]), node.line);
  if (node.exprs.size() == 1) return all;
  Json::Array kept;
  for (Json& entry : all) {
    scopes_.emplace_back();
    bind(node, entry);
    if (truth(eval(node.exprs[1]))) kept.push_back(std::move(entry));
    scopes_.pop_back();
  }
  return kept;
}

Renderer::Flow Renderer::loop(const Node& node) {
  const Json::Array all = loop_entries(node);
  if (all.empty() && node.bodies.size() > 1) return execute(node.bodies[1]);
  const auto length = static_cast<int64_t>(all.size());
  for (int64_t i = 0; i < length; ++i) {
    count_step(node.line);
    scopes_.emplace_back();
    bind(node, all[static_cast<size_t>(i)]);
    Json::Object state{{"index", i + 1},
                       {"index0", i},
                       {"first", i == 0},
                       {"last", i + 1 == length},
                       {"length", length},
                       {"revindex", length - i},
                       {"revindex0", length - i - 1},
                       {"depth", 1},  // recursive loops are refused
                       {"depth0", 0}};
    if (i > 0) state.emplace_back("previtem", all[static_cast<size_t>(i - 1)]);
    if (i + 1 < length) state.emplace_back("nextitem", all[static_cast<size_t>(i + 1)]);
    scopes_.back()["loop"] = Json(std::move(state));
    const Flow flow = execute(node.bodies[0]);
    scopes_.pop_back();
    if (flow == Flow::kBreak) break;
  }
  return Flow::kOn;
}

std::string render(const std::vector<Node>& nodes, const Json::Object& variables, const std::string& name) {
  return Renderer(variables, name).run(nodes);
}

}  // namespace megalith::jinja
