#pragma once

#include <map>
#include <string>

#include "libcore/convert/output/conversion.h"

namespace megalith {

/// README.md of an exported model, by Hugging Face's rules: what the model is and how to run it. For a
/// checkpoint that was trained here, also its data, every option and a picture of the loss (loss.svg). The
/// picture shows the losses that the checkpoint keeps. If the checkpoint keeps none, they are read from the
/// run's log of JSON lines, which must be named in the run's options and exist there or next to the
/// checkpoint. Returns the files' contents by name.
std::map<std::string, std::string> model_card(const Conversion& conversion, const std::string& title,
                                              int64_t parameters);

}  // namespace megalith
