// SPDX-License-Identifier: Apache-2.0
// How native code reports: a value or a record that says why there is none; it becomes `Outcome` of
// contract/outcome.ts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "generated/contract.hpp"

namespace nccl_ext {

// What was waited for or allowed, or what was there instead.
using RecordValue = std::variant<std::string, std::int64_t>;

struct ErrorRecord {
  ErrorCode code = ErrorCode::kInternal;
  std::string op;      // the operation, as in `barrier`, `allocate`
  std::string detail;  // a sentence for people
  int rank = -1;       // the rank that reports, -1 unknown
  int peer = -1;       // the rank that is missing or at fault, -1 none
  RecordValue expected = std::string();
  RecordValue seen = std::string();
  std::string help;  // what to do about it; empty when nothing is known
};

// Builds a record field by field: fail(ErrorCode::kTimeout, "barrier", "...").ofRank(2).fromPeer(3).
class Failure {
 public:
  Failure(ErrorCode code, std::string op, std::string detail) {
    record_.code = code;
    record_.op = std::move(op);
    record_.detail = std::move(detail);
  }
  Failure&& ofRank(int rank) && {
    record_.rank = rank;
    return std::move(*this);
  }
  Failure&& fromPeer(int peer) && {
    record_.peer = peer;
    return std::move(*this);
  }
  Failure&& expecting(RecordValue expected, RecordValue seen) && {
    record_.expected = std::move(expected);
    record_.seen = std::move(seen);
    return std::move(*this);
  }
  Failure&& helped(std::string help) && {
    record_.help = std::move(help);
    return std::move(*this);
  }
  operator ErrorRecord() && { return std::move(record_); }

 private:
  ErrorRecord record_;
};

inline Failure fail(ErrorCode code, std::string op, std::string detail) {
  return Failure(code, std::move(op), std::move(detail));
}

// A value, or why there is none. Check with `if (!outcome)` before value().
template <class T>
class [[nodiscard]] Outcome {
 public:
  Outcome(T value) : held_(std::in_place_index<0>, std::move(value)) {}
  Outcome(ErrorRecord error) : held_(std::in_place_index<1>, std::move(error)) {}
  Outcome(Failure&& failure) : held_(std::in_place_index<1>, std::move(failure)) {}

  explicit operator bool() const { return held_.index() == 0; }
  T& value() { return std::get<0>(held_); }
  const T& value() const { return std::get<0>(held_); }
  const ErrorRecord& error() const { return std::get<1>(held_); }

 private:
  std::variant<T, ErrorRecord> held_;
};

// Success, or a record. `ok` is success.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(ErrorRecord error) : error_(std::move(error)) {}
  Status(Failure&& failure) : error_(ErrorRecord(std::move(failure))) {}

  explicit operator bool() const { return !error_.has_value(); }
  const ErrorRecord& error() const { return *error_; }

 private:
  std::optional<ErrorRecord> error_;
};

inline Status ok() {
  return Status();
}

}  // namespace nccl_ext
