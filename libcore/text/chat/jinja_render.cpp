#include <algorithm>
#include <iterator>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/text/chat/jinja_renderer.h"
#include "libcore/text/chat/jinja_text.h"

namespace megalith::jinja {
namespace {

constexpr size_t kMaxSteps = 2'000'000;          // stops a template that would never end
constexpr size_t kBytesAStep = size_t{4} << 10;  // copying this many bytes takes about as long as a step
constexpr size_t kMaxKept = 4 * kMaxText;        // bytes of all variables and open blocks

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

void Renderer::refuse_size(int line) const {
  refuse(line, concat("a value of more than ", kMaxText, " bytes"));
}

size_t Renderer::measure(const Json* json, int line) const {
  const Extent extent = json == nullptr ? Extent{} : extent_of(*json);
  if (extent.bytes > Extent::kMaxBytes) refuse_size(line);
  if (extent.depth > Extent::kDeepest)
    refuse(line, concat("a value nested more than ", Extent::kDeepest, " levels deep"));
  return extent.bytes;
}

void Renderer::count_step(int line, size_t bytes) {
  steps_ += 1 + bytes / kBytesAStep;
  if (steps_ > kMaxSteps || out_.size() > kMaxText) refuse(line, "the template does not end");
}

void Renderer::count_kept(size_t bytes, int line) {
  kept_ += bytes;
  if (kept_ > kMaxKept) refuse(line, concat("its variables take more than ", kMaxKept, " bytes"));
}

void Renderer::keep(Value& place, Value value, int line) {
  count_kept(measure(json_of(value), line), line);
  kept_ -= measure(json_of(place), line);
  place = std::move(value);
}

void Renderer::close_scope(int line) {
  for (const auto& [name, value] : scopes_.back()) kept_ -= measure(json_of(value), line);
  scopes_.pop_back();
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
      return generate(node);
    case Node::kMacro:
      keep(scopes_.back()[node.names[0]], Macro{&node}, node.line);
      return Flow::kOn;
  }
  return Flow::kOn;
}

void Renderer::set(const Node& node, Value value) {
  if (node.names.size() == 1) return keep(scopes_.back()[node.names[0]], std::move(value), node.line);
  const Value target = look_up(node.names[0]);
  const Namespace* space = std::get_if<Namespace>(&target);
  if (space == nullptr)
    refuse(node.line, concat(quote(node.names[0]), " is not a namespace, so it has no member to set"));
  const Json* json = json_of(value);
  if (json == nullptr) refuse(node.line, concat("a namespace cannot hold ", kind_of(value)));
  count_kept(measure(json, node.line), node.line);
  Json& place = (**space)[node.names[1]];
  kept_ -= measure(&place, node.line);
  place = *json;
}

Renderer::Flow Renderer::generate(const Node& node) {
  if (captures_ > 0) refuse(node.line, "{% generation %} inside of {% set %} or a macro is not supported");
  const size_t begin = out_.size();
  const Flow flow = execute(node.bodies[0]);
  generated_.emplace_back(begin, out_.size());
  return flow;
}

Renderer::Flow Renderer::capture(const Node& node) {
  std::string before = std::exchange(out_, {});
  count_kept(before.size(), node.line);
  ++captures_;
  const Flow flow = execute(node.bodies[0]);
  --captures_;
  kept_ -= before.size();
  std::string made = std::exchange(out_, std::move(before));
  set(node, Json(std::move(made)));
  return flow;
}

Value Renderer::call_macro(const Expr& expr) {
  constexpr int kMostMacros = 50;
  const Value callee = look_up(expr.text);
  const Macro* const macro = std::get_if<Macro>(&callee);
  if (macro == nullptr) refuse(expr.line, concat("the function ", quote(expr.text), " is not supported"));
  const Node& node = *macro->node;
  const size_t count = node.exprs.size();
  if (expr.children.size() > count)
    refuse(expr.line, concat("the macro ", quote(expr.text), " takes at most ", count, " arguments, found ",
                             expr.children.size()));
  if (++macros_ > kMostMacros) refuse(expr.line, "macros nested too deeply");
  Scope scope;
  for (size_t i = 0; i < expr.children.size(); ++i)
    keep(scope[node.names[i + 1]], eval(expr.children[i]), expr.line);
  for (const auto& [name, value] : expr.named) {
    if (std::find(node.names.begin() + 1, node.names.end(), name) == node.names.end() ||
        scope.count(name) > 0)
      refuse(expr.line, concat("the macro ", quote(expr.text), " with an argument named ", quote(name),
                               " is not supported"));
    keep(scope[name], eval(value), expr.line);
  }
  // A macro sees its arguments and the template's own variables, not those of the loops that call it.
  std::vector<Scope> outer(std::make_move_iterator(scopes_.begin() + 1),
                           std::make_move_iterator(scopes_.end()));
  scopes_.resize(1);
  scopes_.push_back(std::move(scope));
  for (size_t i = 0; i < count; ++i)
    if (scopes_.back().count(node.names[i + 1]) == 0)
      keep(scopes_.back()[node.names[i + 1]], eval(node.exprs[i]), expr.line);
  std::string before = std::exchange(out_, {});
  count_kept(before.size(), expr.line);
  ++captures_;
  execute(node.bodies[0]);
  --captures_;
  kept_ -= before.size();
  close_scope(expr.line);
  scopes_.insert(scopes_.end(), std::make_move_iterator(outer.begin()), std::make_move_iterator(outer.end()));
  --macros_;
  return Json(std::exchange(out_, std::move(before)));
}

Renderer::Flow Renderer::choose(const Node& node) {
  for (size_t i = 0; i < node.exprs.size(); ++i)
    if (truth(eval(node.exprs[i]))) return execute(node.bodies[i]);
  return node.bodies.size() > node.exprs.size() ? execute(node.bodies.back()) : Flow::kOn;
}

void Renderer::bind(const Node& node, const Json& entry) {
  if (node.names.size() == 1) return keep(scopes_.back()[node.names[0]], entry, node.line);
  if (!entry.is_array() || entry.as_array().size() != node.names.size())
    refuse(node.line, concat("cannot take ", node.names.size(), " variables from ", kind_of(entry)));
  for (size_t i = 0; i < node.names.size(); ++i)
    keep(scopes_.back()[node.names[i]], entry.as_array()[i], node.line);
}

Json::Array Renderer::loop_entries(const Node& node) {
  Json::Array all = entries(eval(node.exprs[0]), node.line);
  if (node.exprs.size() == 1) return all;
  Json::Array kept;
  for (Json& entry : all) {
    scopes_.emplace_back();
    bind(node, entry);
    if (truth(eval(node.exprs[1]))) kept.push_back(std::move(entry));
    close_scope(node.line);
  }
  return kept;
}

Renderer::Flow Renderer::loop(const Node& node) {
  const Json list(loop_entries(node));
  const Json::Array& all = list.as_array();
  if (all.empty() && node.bodies.size() > 1) return execute(node.bodies[1]);
  const size_t bytes = measure(&list, node.line);
  count_kept(bytes, node.line);
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
    keep(scopes_.back()["loop"], Json(std::move(state)), node.line);
    const Flow flow = execute(node.bodies[0]);
    close_scope(node.line);
    if (flow == Flow::kBreak) break;
  }
  kept_ -= bytes;
  return Flow::kOn;
}

Rendered render(const std::vector<Node>& nodes, const Json::Object& variables, const std::string& name) {
  return Renderer(variables, name).run(nodes);
}

}  // namespace megalith::jinja
