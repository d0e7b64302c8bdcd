#include "libcore/dialects/llama_factory/factory_names.h"

#include <algorithm>
#include <vector>

#include "libcore/finetune/lora.h"

namespace megalith {

void FactoryNames::apply(FinetuneConfig& config) const {
  config.preference.wanted |= stage == "dpo";
  if (template_name) config.data.style = PromptStyle::kChat;
  std::vector<std::string>& modules = config.method.modules;
  std::replace(modules.begin(), modules.end(), std::string("all"), std::string(kAllLinear));
}

}  // namespace megalith
