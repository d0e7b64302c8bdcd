#include "libcore/dialects/llama_factory/factory_names.h"

#include <algorithm>
#include <vector>

#include "libcore/finetune/lora.h"

namespace megalith {
namespace {

/// As LLaMA-Factory's template "llama3" (src/llamafactory/data/template.py): no default system message, no
/// date, and contents with the blanks around them. Tools are not rendered here, so records with tools are
/// refused.
NamedTemplate llama3() {
  return {.name = "--template llama3",
          .jinja =
              "{{ bos_token }}{% for message in messages %}"
              "{% set role = 'ipython' if message['role'] == 'tool' else message['role'] %}"
              "{{ '<|start_header_id|>' + role + '<|end_header_id|>\n\n' + message['content'] + "
              "'<|eot_id|>' }}{% endfor %}{% if add_generation_prompt %}"
              "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}",
          .marks = {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}};
}

}  // namespace

void FactoryNames::apply(FinetuneConfig& config) const {
  config.preference.wanted |= stage == "dpo";
  if (template_name) {
    config.data.style = PromptStyle::kChat;
    config.data.named_template = llama3();
  }
  std::vector<std::string>& modules = config.method.modules;
  std::replace(modules.begin(), modules.end(), std::string("all"), std::string(kAllLinear));
}

}  // namespace megalith
