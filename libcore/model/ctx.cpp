#include "libcore/model/ctx.h"

#include <utility>

namespace megalith {

Arena make_arena(Backend& backend, std::string name, size_t bytes) {
  Memory memory = backend.allocate(bytes);
  if (!memory.data) return Arena::counting(std::move(name));
  return {std::move(name), std::move(memory)};
}

}  // namespace megalith
