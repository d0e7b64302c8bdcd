#include "libcore/io/streams/decoder.h"

#include <array>
#include <utility>

#include "libcore/base/plugins/plugin.h"

namespace megalith {
namespace {

struct Magic {
  std::string_view bytes;
  Compression compression;
};

constexpr std::array<Magic, 4> kMagics = {{{"\x1f\x8b", Compression::kGzip},
                                           {"\x28\xb5\x2f\xfd", Compression::kZstd},
                                           {"BZh", Compression::kBzip2},
                                           {{"\xfd"
                                             "7zXZ\0",
                                             6},
                                            Compression::kXz}}};

const Plugin& plugin() {
  static const Plugin kPlugin("libmegalith_decoder.so");
  return kPlugin;
}

}  // namespace

std::unique_ptr<Decoder> make_decoder(Compression compression) {
  return std::unique_ptr<Decoder>(plugin().function<Decoder*(Compression)>("megalith_decoder")(compression));
}

std::optional<Compression> compression_by_head(std::string_view head) {
  for (const Magic& magic : kMagics)
    if (head.starts_with(magic.bytes)) return magic.compression;
  return std::nullopt;
}

std::unique_ptr<Decoder> make_decoder(std::string_view head) {
  const std::optional<Compression> compression = compression_by_head(head);
  return compression ? make_decoder(*compression) : nullptr;
}

std::string_view compression_of(std::string_view path) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kEnds = {
      {{".gz", "gzip"}, {".zst", "zstd"}, {".bz2", "bzip2"}, {".xz", "xz"}}};
  for (const auto& [end, format] : kEnds)
    if (path.ends_with(end)) return format;
  return {};
}

std::string_view uncompressed_name(std::string_view path) {
  return compression_of(path).empty() ? path : path.substr(0, path.rfind('.'));
}

bool magic_undecided(std::string_view head) {
  for (const Magic& magic : kMagics)
    if (head.size() < magic.bytes.size() && magic.bytes.starts_with(head)) return true;
  return false;
}

}  // namespace megalith
