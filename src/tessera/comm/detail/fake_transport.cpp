// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include <tessera/base/half_float.hpp>
#include <tessera/comm/detail/transport.hpp>

namespace tessera {
namespace {

/// Returns numbers of a floating-point type in host memory, from -1/32 to 1/32: as activations,
/// gradients or weights they make nothing overflow.
Buffer small_numbers(DType type) {
  return with_compute_type(type, [](auto t) {
    static std::array<decltype(t), 1021> numbers = [] {
      std::array<decltype(t), 1021> made{};
      for (int i = 0; i < 1021; ++i) made[i] = static_cast<float>(389 * i % 1021 - 510) / 16384;
      return made;
    }();
    return Buffer{numbers.data(), 1021, dtype_of<decltype(t)>()};
  });
}

/// Fills `whole` with copies of `part` or, if it is empty, of small numbers.
void repeat(const Buffer& part, const Buffer& whole) {
  if (part.count == 0 && whole.count > 0) return repeat(small_numbers(whole.type), whole);
  for (Size filled = 0, more = 0; filled < whole.count; filled += more) {
    const Buffer& from = filled == 0 ? part : whole;
    more = std::min(filled == 0 ? part.count : filled, whole.count - filled);
    copy(from.slice(0, more), whole.slice(filled, more), false);
  }
}

struct FakeCall final : PendingCall {
  bool advance(bool) override { return true; }
};

class FakeTransport final : public Transport {
 public:
  FakeTransport(int rank, int size) : rank_(rank), size_(size) {}

  void run(const Call& call) override {
    const Buffer &in = call.in, &out = call.out;
    if (call.operation == Operation::receive) repeat(small_numbers(out.type), out);
    if (call.operation == Operation::all_to_all) repeat(in, out);
    const bool gathers = call.operation == Operation::all_gather;
    if (!gathers && call.operation != Operation::reduce_scatter) return;
    const Range own = share_of(call, size_, rank_);
    if (!gathers) return copy(in.slice(own.begin, own.count), out, false);
    copy(in, out.slice(own.begin, own.count), false);
    repeat(in, out.slice(0, own.begin));
    repeat(in, out.slice(own.end(), out.count - own.end()));
  }
  std::unique_ptr<PendingCall> start(const Call& call) override {
    run(call);
    return std::make_unique<FakeCall>();
  }

 private:
  int rank_, size_;
};

}  // namespace

std::unique_ptr<Transport> make_fake_transport(int rank, int size) {
  return std::make_unique<FakeTransport>(rank, size);
}

}  // namespace tessera
