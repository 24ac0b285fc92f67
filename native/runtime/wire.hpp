// SPDX-License-Identifier: Apache-2.0
// Numbers, texts and error records as bytes, for the ranks of one world: same build, same byte order.
#pragma once

#include <cstring>

#include "runtime/meeting.hpp"

namespace nccl_ext {

class Writer {
 public:
  Writer& number(std::int64_t value) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof value);
    std::memcpy(bytes_.data() + at, &value, sizeof value);
    return *this;
  }
  template <class Container>
  Writer& block(const Container& value) {
    number(static_cast<std::int64_t>(value.size()));
    bytes_.insert(bytes_.end(), value.begin(), value.end());
    return *this;
  }
  Writer& record(const ErrorRecord& error);
  Bytes take() { return std::move(bytes_); }

 private:
  Bytes bytes_;
};

// Reads what a Writer wrote. Past the end everything is empty and good() is false.
class Reader {
 public:
  explicit Reader(const Bytes& bytes) : bytes_(bytes) {}
  std::int64_t number();
  std::string text();
  Bytes block();
  ErrorRecord record();
  bool good() const { return good_; }

 private:
  const Bytes& bytes_;
  std::size_t at_ = 0;
  bool good_ = true;
};

}  // namespace nccl_ext
