#include "libcore/io/ahead/fed_decoder.h"

#include <utility>

#include "libcore/base/error.h"

namespace megalith {

FedDecoder::FedDecoder(std::string path, Compression compression)
    : path_(std::move(path)), decoder_(make_decoder(compression)) {}

void FedDecoder::fail_damaged(const char* why) const {
  fail(ErrorKind::kData, path_, ": damaged ", decoder_->format(), " data: ", why);
}

size_t FedDecoder::read(char* out, size_t room) {
  for (;;) {
    if (window_.empty() && !full_) window_ = more();
    if (window_.empty() && !full_) {
      if (!is_whole(made_, ended_)) fail_damaged("a piece of it is not whole");
      return 0;
    }
    if (ended_) fail_damaged("other data follows the compressed data");
    const Decoder::Step step = decoder_->decode(window_, {out, room});
    if (step.error) fail_damaged(step.error);
    window_ = window_.subspan(step.taken);
    full_ = step.made == room && !step.member_ended;
    ended_ = step.member_ended;
    made_ += step.made;
    if (step.made > 0) return step.made;
  }
}

}  // namespace megalith
