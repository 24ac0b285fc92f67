// SPDX-License-Identifier: Apache-2.0
#include "runtime/wire.hpp"

namespace nccl_ext {
namespace {

void writeValue(Writer& out, const RecordValue& value) {
  out.number(static_cast<std::int64_t>(value.index()));
  if (const auto* text = std::get_if<std::string>(&value))
    out.block(*text);
  else
    out.number(std::get<std::int64_t>(value));
}

RecordValue readValue(Reader& in) {
  if (in.number() == 0) return in.text();
  return in.number();
}

}  // namespace

Writer& Writer::record(const ErrorRecord& error) {
  number(static_cast<std::int64_t>(error.code)).number(error.rank).number(error.peer);
  block(error.op).block(error.detail).block(error.help);
  writeValue(*this, error.expected);
  writeValue(*this, error.seen);
  return *this;
}

std::int64_t Reader::number() {
  std::int64_t value = 0;
  if (bytes_.size() - at_ < sizeof value) {
    good_ = false;
    return 0;
  }
  std::memcpy(&value, bytes_.data() + at_, sizeof value);
  at_ += sizeof value;
  return value;
}

Bytes Reader::block() {
  const std::int64_t size = number();
  if (!good_ || size < 0 || static_cast<std::size_t>(size) > bytes_.size() - at_) {
    good_ = false;
    return {};
  }
  const auto first = bytes_.begin() + static_cast<std::ptrdiff_t>(at_);
  at_ += static_cast<std::size_t>(size);
  return Bytes(first, first + static_cast<std::ptrdiff_t>(size));
}

std::string Reader::text() {
  const Bytes bytes = block();
  return std::string(bytes.begin(), bytes.end());
}

ErrorRecord Reader::record() {
  ErrorRecord error;
  error.code = static_cast<ErrorCode>(number());
  error.rank = static_cast<int>(number());
  error.peer = static_cast<int>(number());
  error.op = text();
  error.detail = text();
  error.help = text();
  error.expected = readValue(*this);
  error.seen = readValue(*this);
  return error;
}

}  // namespace nccl_ext
