#include "libcore/ops/backend.h"

namespace megalith {

void Stream::copy(View to, ConstView from) { backend_->copy(*this, to, from); }
void Stream::to_host(void* to, ConstView from) { backend_->to_host(*this, to, from); }
void Stream::from_host(View to, const void* from) { backend_->from_host(*this, to, from); }
void Stream::fill(View to, double value) { backend_->fill(*this, to, value); }
void Stream::add(View to, ConstView from) { backend_->add(*this, to, from); }
Event Stream::record() { return backend_->record(*this); }
void Stream::wait(const Event& event) { backend_->wait(*this, event); }
void Stream::synchronize() { backend_->synchronize(*this); }

}  // namespace megalith
