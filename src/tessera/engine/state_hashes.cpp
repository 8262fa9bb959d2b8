// SPDX-License-Identifier: Apache-2.0
#include <map>

#include <tessera/engine/digest.hpp>
#include <tessera/engine/state_hashes.hpp>
#include <tessera/plan/grains.hpp>

namespace tessera {
template <class T>
StateHashes<T>::StateHashes(const Plan& plan, const Mesh& mesh, const Engine<T>& engine)
    : mesh_(mesh), engine_(engine), names_{"loss"} {
  const PlanInput& input = plan.input;
  std::map<std::string, std::size_t> number;
  for (const char* suffix : {".gradient", ""})
    for (const LayerSpec& layer : input.model.layers)
      for (const ParameterSpec& parameter : layer.parameters) {
        number[path_of(layer, parameter) + suffix] = names_.size();
        names_.push_back(path_of(layer, parameter) + suffix);
      }
  for (const TensorRole role : {TensorRole::gradient, TensorRole::parameter})
    for (const TensorPart& part : tensor_parts(plan, mesh.rank(), role))
      if (part.is_first && part.counts && part.owned.count > 0)
        parts_.push_back({local_tensor(engine, part), number.at(part.slot.path)});
  if (plan.input.mesh.coordinate(mesh.rank(), "model") == 0)
    losses_ = input.numerics.reproducible ? Range{engine.state().grains.begin * input.loss_blocks(),
                                                  engine.state().grains.count * input.loss_blocks()}
                                          : Range{0, input.microbatches};
  sums_ = allocate_zeros<std::int64_t>("tessera::hashes", static_cast<Size>(names_.size()));
}

template <class T>
std::vector<std::uint64_t> StateHashes<T>::operator()(Size batch) const {
  Kokkos::deep_copy(ExecSpace(), sums_, std::int64_t{0});
  const Vector<double> losses = engine_.sums().losses(batch, losses_);
  const Size count = static_cast<Size>(losses.extent(0));
  const Size first = losses_.begin * engine_.plan().input.loss_terms();
  // A stage writes the terms of its own layers; the others are zero.
  digest<double>(losses, GlobalIndex({first + count}, {{first}, {count}}), 0, sums_, 0,
                 LeftOut::zeros);
  for (const Part& part : parts_)
    digest<StateOf<T>>(part.tensor.owned_values(),
                       GlobalIndex(part.tensor.slot.shape, part.tensor.piece),
                       part.tensor.owned.begin, sums_, static_cast<Size>(part.name));
  engine_.communicators()[mesh_.shape().all_axes()].all_reduce(sums_);
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), sums_);
  const auto* const bits = reinterpret_cast<const std::uint64_t*>(host.data());
  return {bits, bits + host.extent(0)};
}

TESSERA_INSTANTIATE_CLASS(StateHashes);

}  // namespace tessera
