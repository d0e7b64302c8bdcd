#include "libcore/model/ctx.h"

#include <utility>

namespace megalith {

RowPositions Ctx::outside_rows(int64_t rows) const {
  const int64_t inside = tp.sequence() ? rows * tp.size() : rows;
  return cp.rows(inside).from(tp.first_row(inside));
}

Arena make_arena(Backend& backend, std::string name, size_t bytes) {
  Memory memory = backend.allocate(bytes);
  if (!memory.data) return Arena::counting(std::move(name));
  return {std::move(name), std::move(memory)};
}

}  // namespace megalith
