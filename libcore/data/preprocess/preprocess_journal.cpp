#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/data/preprocess/preprocess_stages.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json_names.h"
#include "libcore/json/sealed_json.h"

namespace megalith {

PreprocessJournal::PreprocessJournal(const std::string& output_prefix, Json identity)
    : path_(path_of(output_prefix)), lock_(path_), identity_(std::move(identity)) {
  if (!file_exists(path_)) return;
  const std::string text = read_own_file(path_);
  if (seal_of(text) != Seal::kWhole)
    fail(ErrorKind::kData, "--resume: ", path_,
         ": its checksum does not match its text: it was changed after it was written, or an earlier version "
         "wrote it; remove that file to start over");
  const Json journal = Json::parse(text, path_);
  const JsonNames names(journal, path_);
  const Json& theirs = journal["run"];
  for (const auto& [name, ours] : identity_.as_object()) {
    const Json* other = theirs.find(name);
    if (other && *other == ours) continue;
    fail(ErrorKind::kUsage, "--resume: ", path_, " belongs to a run with another ", quote(name), ": ",
         other ? other->dump() : "none", ", now ", ours.dump(),
         "; give the same inputs and options, or remove that file to start over");
  }
  state_ = read_fields<PreprocessState>(journal["state"]);
}

std::string PreprocessJournal::path_of(const std::string& output_prefix) {
  return output_prefix + ".resume.json";
}

void PreprocessJournal::write(const PreprocessState& state) const {
  Json journal = Json::object();
  journal.set("run", identity_);
  add_fields(journal.set("state", Json::object()), state);
  // with 0 kept bytes, the file has its .partial name, so killed runs leave at most one such file
  AtomicFile file(path_, 0);
  file.write(sealed(journal));
  file.commit();
}

void PreprocessJournal::remove() const {
  if (::unlink(path_.c_str()) != 0 && file_exists(path_))
    fail(ErrorKind::kIo, path_, ": cannot remove the state of an interrupted run");
  ::unlink(AtomicFile::partial_name(path_).c_str());
}

}  // namespace megalith
