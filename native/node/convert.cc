// SPDX-License-Identifier: Apache-2.0
#include "node/convert.hpp"

#include <algorithm>
#include <cmath>

namespace nccl_ext {
namespace {

constexpr double kMaxSafeInteger = 9007199254740991.0;
// More ranks are refused anyway.
constexpr std::size_t kMostSms = 4096;

Napi::Value valueToJs(Napi::Env env, const RecordValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return Napi::String::New(env, *text);
  const std::int64_t number = std::get<std::int64_t>(value);
  if (std::abs(static_cast<double>(number)) <= kMaxSafeInteger)
    return Napi::Number::New(env, static_cast<double>(number));
  return Napi::BigInt::New(env, number);
}

Napi::Value field(const Napi::Value& object, const char* name) {
  return object.IsObject() ? object.As<Napi::Object>().Get(name) : object.Env().Undefined();
}

Timeout timeoutOf(const Napi::Value& config) {
  const Napi::Value value = field(config, "timeoutMs");
  if (!value.IsNumber()) return Timeout(0);
  const double milliseconds = std::ceil(value.As<Napi::Number>().DoubleValue());
  return Timeout(milliseconds >= 1 && milliseconds <= 0x7fff'ffff ? static_cast<std::int64_t>(milliseconds) : 0);
}

std::vector<int> listOf(const Napi::Value& value) {
  std::vector<int> numbers;
  if (!value.IsArray()) return numbers;
  const auto list = value.As<Napi::Array>();
  for (std::uint32_t i = 0; i < list.Length(); i++) numbers.push_back(smallIntegerOf(list.Get(i)));
  return numbers;
}

// By rank; absent: the backend chooses.
std::vector<int> smsOf(const Napi::Value& value, int ranks) {
  if (value.IsArray()) return listOf(value);
  const std::size_t count = value.IsUndefined() || ranks < 1 ? 0 : static_cast<std::size_t>(ranks);
  return std::vector<int>(std::min(count, kMostSms), smallIntegerOf(value));
}

}  // namespace

std::int64_t integerOf(const Napi::Value& value) {
  if (!value.IsNumber()) return -1;
  const double number = value.As<Napi::Number>().DoubleValue();
  if (std::isnan(number) || std::trunc(number) != number || std::abs(number) > kMaxSafeInteger) return -1;
  return static_cast<std::int64_t>(number);
}

std::int64_t anyIntegerOf(const Napi::Value& value) {
  const std::int64_t number = integerOf(value);
  const bool isOne = value.IsNumber() && static_cast<double>(number) == value.As<Napi::Number>().DoubleValue();
  return isOne ? number : INT64_MIN;
}

int smallIntegerOf(const Napi::Value& value) {
  const std::int64_t number = integerOf(value);
  return number >= INT32_MIN && number <= INT32_MAX ? static_cast<int>(number) : -1;
}

std::uint64_t addressOf(const Napi::Value& value) {
  if (!value.IsBigInt()) return 0;
  bool lossless = false;
  const std::uint64_t address = value.As<Napi::BigInt>().Uint64Value(&lossless);
  return lossless ? address : 0;
}

std::string textOf(const Napi::Value& value) {
  return value.IsString() ? value.As<Napi::String>().Utf8Value() : "";
}

Bytes bytesOf(const Napi::Value& value) {
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != napi_uint8_array) return {};
  const auto array = value.As<Napi::Uint8Array>();
  return Bytes(array.Data(), array.Data() + array.ElementLength());
}

HostSpan spanOf(const Napi::Value& value) {
  HostSpan span;
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != napi_uint8_array) return span;
  auto array = value.As<Napi::Uint8Array>();
  span.data = array.Data();
  span.bytes = array.ElementLength();
  span.keep = std::make_shared<Napi::ObjectReference>(Napi::Persistent(array.As<Napi::Object>()));
  return span;
}

LocalRanksConfig localRanksConfigOf(const Napi::Value& value) {
  LocalRanksConfig config;
  config.ranks = smallIntegerOf(field(value, "ranks"));
  config.timeout = timeoutOf(value);
  config.sms = smsOf(field(value, "sms"), config.ranks);
  config.devices = listOf(field(value, "devices"));
  return config;
}

JoinConfig joinConfigOf(const Napi::Value& value) {
  JoinConfig config;
  config.rank = smallIntegerOf(field(value, "rank"));
  config.worldSize = smallIntegerOf(field(value, "worldSize"));
  config.localRank = smallIntegerOf(field(value, "localRank"));
  config.localWorldSize = smallIntegerOf(field(value, "localWorldSize"));
  config.address = textOf(field(value, "address"));
  config.port = smallIntegerOf(field(value, "port"));
  config.token = textOf(field(value, "token"));
  config.timeout = timeoutOf(value);
  const Napi::Value sms = field(value, "sms");
  config.sms = sms.IsUndefined() ? 0 : smallIntegerOf(sms);
  return config;
}

NcclChoice ncclChoiceOf(const Napi::Value& value) {
  return {textOf(field(value, "ncclLibrary")), textOf(field(value, "ncclHome"))};
}

Napi::Object toJs(Napi::Env env, const ErrorRecord& error) {
  Napi::Object record = Napi::Object::New(env);
  record.Set("code", static_cast<std::int32_t>(error.code));
  record.Set("op", error.op);
  record.Set("rank", error.rank);
  record.Set("peer", error.peer);
  record.Set("expected", valueToJs(env, error.expected));
  record.Set("seen", valueToJs(env, error.seen));
  record.Set("detail", error.detail);
  if (!error.help.empty()) record.Set("help", error.help);
  return record;
}

Napi::Value toJs(Napi::Env env, const Bytes& bytes) {
  Napi::Uint8Array array = Napi::Uint8Array::New(env, bytes.size());
  std::copy(bytes.begin(), bytes.end(), array.Data());
  return array;
}

Napi::Value toJs(Napi::Env env, const std::vector<Bytes>& list) {
  Napi::Array array = Napi::Array::New(env, list.size());
  for (std::uint32_t i = 0; i < list.size(); i++) array.Set(i, toJs(env, list[i]));
  return array;
}

Napi::Value toJs(Napi::Env env, const std::vector<Handle>& handles) {
  Napi::Array array = Napi::Array::New(env, handles.size());
  for (std::uint32_t i = 0; i < handles.size(); i++) array.Set(i, toJs(env, handles[i]));
  return array;
}

Napi::Value toJs(Napi::Env env, const Facts& facts) {
  Napi::Object out = Napi::Object::New(env);
  for (const auto& [name, value] : facts) out.Set(name, value);
  return out;
}

Napi::Value toJs(Napi::Env env, const std::optional<SplitRank>& split) {
  if (!split) return env.Undefined();
  Napi::Object out = Napi::Object::New(env);
  out.Set("handle", toJs(env, split->handle));
  out.Set("rank", split->rank);
  out.Set("size", split->size);
  return out;
}

Napi::Value toJs(Napi::Env env, Handle handle) {
  return Napi::Number::New(env, static_cast<double>(handle));
}
Napi::Value toJs(Napi::Env env, bool value) {
  return Napi::Boolean::New(env, value);
}
Napi::Value toJs(Napi::Env env, double value) {
  return Napi::Number::New(env, value);
}

Napi::Object succeeded(Napi::Env env, Napi::Value value) {
  Napi::Object outcome = Napi::Object::New(env);
  outcome.Set("ok", true);
  outcome.Set("value", value);
  return outcome;
}

Napi::Object failed(Napi::Env env, const ErrorRecord& error) {
  Napi::Object outcome = Napi::Object::New(env);
  outcome.Set("ok", false);
  outcome.Set("error", toJs(env, error));
  return outcome;
}

}  // namespace nccl_ext
