// SPDX-License-Identifier: Apache-2.0
#include <map>

#include <tessera/tensor/mesh.hpp>

namespace tessera {

struct Mesh::State {
  Communicator world;
  MeshShape shape;
  Size rank;
  std::vector<Size> coordinates;
  Communicator self;
  std::vector<Communicator> axes;
  std::map<AxisSet, Communicator> groups;

  /// Ranks of one group share the coordinates along all other axes.
  Communicator split(AxisSet along, const MeshShape& shape) const {
    return world.split([&](int of) { return static_cast<int>(shape.first_of_group(along, of)); },
                       shape.group_name(along));
  }
};

Mesh::Mesh(const Communicator& world, MeshShape shape) {
  shape = MeshShape::fit(shape.axes(), world.size());
  state_ = std::make_shared<State>(State{
      world, shape, world.rank(), shape.coordinates(world.rank()), world.alone("self"), {}, {}});
  for (std::size_t a = 0; a < shape.num_axes(); ++a) {
    const Axis& axis = shape.axes()[a];
    state_->axes.push_back(axis.size == 1 ? world.alone(axis.name) : state_->split({a}, shape));
  }
}

const MeshShape& Mesh::shape() const { return state_->shape; }
Size Mesh::rank() const { return state_->rank; }
const std::vector<Size>& Mesh::coordinates() const { return state_->coordinates; }
const Communicator& Mesh::world() const { return state_->world; }

const Communicator& Mesh::axis(std::string_view name) const {
  const auto a = state_->shape.find(name);
  return a ? state_->axes[*a] : state_->self;
}

const Communicator& Mesh::axis(std::size_t index) const { return state_->axes.at(index); }

Communicator Mesh::over(AxisSet axes) const {
  AxisSet along;  // the axes larger than 1
  for (const std::size_t a : axes)
    if (state_->shape.axis(a).size > 1) along = along | AxisSet{a};
  if (along.empty()) return state_->self;
  if (along == AxisSet{*along.begin()}) return state_->axes[*along.begin()];
  const auto known = state_->groups.find(along);
  if (known != state_->groups.end()) return known->second;
  return state_->groups.emplace(along, state_->split(along, state_->shape)).first->second;
}

Communicator Mesh::over(AxisSet axes, const MeshShape& shape) const {
  const bool has_repeats = shape.group_size(axes & shape.repeats()) > 1;
  return has_repeats ? state_->split(axes, shape) : over(axes);
}

}  // namespace tessera
