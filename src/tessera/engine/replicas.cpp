// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <string>

#include <fmt/format.h>

#include <tessera/base/alias.hpp>
#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/comm/share_json.hpp>
#include <tessera/engine/digest.hpp>
#include <tessera/engine/replicas.hpp>

namespace tessera {
namespace {

/// A checksum and its negative are compared by one reduction, so it is not the whole digest.
std::int64_t checksum_of(std::int64_t digest) { return digest & 0xffffffff; }

/// Returns a description of the first tensor of which ranks have different checksums for the same
/// part;
/// "" if there is none. `ranks` holds, by rank, a list of {"tensor", "part", "sum"}.
std::string first_difference(const std::vector<nlohmann::json>& ranks) {
  // Ranks by checksum, for each part of a tensor.
  std::vector<std::pair<std::string, std::map<std::int64_t, std::vector<int>>>> holders;
  std::map<nlohmann::json, std::size_t> place;
  for (std::size_t r = 0; r < ranks.size(); ++r)
    for (const nlohmann::json& held : ranks[r]) {
      const nlohmann::json key{held["tensor"], held["part"]};
      const auto [at, is_new] = place.try_emplace(key, holders.size());
      if (is_new) holders.push_back({held["tensor"], {}});
      holders[at->second].second[held["sum"]].push_back(static_cast<int>(r));
    }
  for (const auto& [tensor, by_sum] : holders) {
    if (by_sum.size() == 1) continue;
    std::vector<std::string> texts;
    for (const auto& [sum, of] : by_sum)
      texts.push_back(
          fmt::format("{:08x} on rank{} {}", sum, of.size() == 1 ? "" : "s", number_ranges(of)));
    return fmt::format("{} has checksum {}", tensor, join(texts, ", "));
  }
  return "";
}

}  // namespace

template <class T>
ReplicaCheck<T>::ReplicaCheck(const Plan& plan, const Mesh& mesh, const Engine<T>& engine)
    : mesh_(mesh),
      layout_(plan.stage(mesh.rank()).parameters),
      communicators_(engine.communicators()),
      engine_(engine),
      tensors_(tensor_parts(plan, mesh.rank(), TensorRole::parameter)),
      calls_(plan_replica_check(plan, mesh.rank())) {
  for (TensorPart& moment : tensor_parts(plan, mesh.rank(), TensorRole::moment))
    tensors_.push_back(std::move(moment));
  const Size n = static_cast<Size>(tensors_.size());
  digests_ = allocate_zeros<std::int64_t>("tessera::checksums", n);
  limits_ = allocate_zeros<std::int64_t>("tessera::checksum_limits", 2 * n);
}

/// Returns true if the checksums of a call are equal on all of its ranks: if their maximum is their
/// minimum, which is the negative maximum of the negative values.
template <class T>
bool ReplicaCheck<T>::all_equal(const CheckCall& call) const {
  const Size n = call.checksums.count;
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), digests_);
  const auto host_limits = Kokkos::create_mirror_view(limits_);
  for (Size i = 0; i < n; ++i) {
    const Size at = call.checksums.begin + i;
    const Size parameter = tensors_[at].slot.parameter;
    const bool is_copied = (call.ranks - layout_.parameters[parameter].copies).empty();
    host_limits(i) = is_copied ? checksum_of(host(at)) : 0;
    host_limits(n + i) = -host_limits(i);
  }
  Kokkos::deep_copy(limits_, host_limits);
  communicators_[call.ranks].all_reduce(alias_vector(limits_.data(), 2 * n), ReduceOp::max);
  Kokkos::deep_copy(host_limits, limits_);
  for (Size i = 0; i < n; ++i)
    if (host_limits(i) != -host_limits(n + i)) return false;
  return true;
}

template <class T>
void ReplicaCheck<T>::operator()(Size step) const {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const TensorPart& part = tensors_[i];
    with_local_tensor(engine_, part, [&]<class E>(const LocalTensor<E>& tensor) {
      digest<E>(tensor.values, GlobalIndex(part.slot.shape, part.piece), part.kept.begin, digests_,
                static_cast<Size>(i));
    });
  }
  bool equal = true;
  for (const CheckCall& call : calls_) equal = all_equal(call) && equal;
  try {
    collectively(mesh_.world(), [&] {
      if (!equal) throw Error(ExitCode::wrong_result, "replicas differ");
    });
  } catch (const Error& error) {
    if (error.code() != ExitCode::wrong_result) throw;
    report(step);
  }
}

/// Gathers all checksums and throws. Collective over the mesh.
template <class T>
void ReplicaCheck<T>::report(Size step) const {
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), digests_);
  nlohmann::json mine;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const TensorPart& tensor = tensors_[i];
    mine.push_back({{"tensor", tensor.slot.path},
                    {"part", {tensor.piece.offset, tensor.kept.begin, tensor.kept.count}},
                    {"sum", checksum_of(host(i))}});
  }
  const std::string difference = conclude_json(mesh_.world(), mine, first_difference);
  if (!difference.empty())
    throw Error(ExitCode::wrong_result, "replicas differ after step {}: {}", step, difference);
  throw Error(ExitCode::wrong_result, "replicas differ after step {}", step);
}

TESSERA_INSTANTIATE_CLASS(ReplicaCheck);

}  // namespace tessera
