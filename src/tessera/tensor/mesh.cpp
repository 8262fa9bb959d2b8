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
  std::map<std::vector<std::size_t>, Communicator> groups;

  /// Ranks of one group share the coordinates along all other axes.
  Communicator split(const std::vector<std::size_t>& along, const std::string& name) const {
    std::vector<Size> first = coordinates;
    for (const std::size_t a : along) first[a] = 0;
    return world.split(static_cast<int>(shape.rank_at(first)),
                       static_cast<int>(shape.coordinate(rank, along)), name);
  }
};

Mesh::Mesh(const Communicator& world, MeshShape shape) {
  shape = MeshShape::fit(shape.axes(), world.size());
  state_ = std::make_shared<State>(State{
      world, shape, world.rank(), shape.coordinates(world.rank()), world.alone("self"), {}, {}});
  for (std::size_t a = 0; a < shape.num_axes(); ++a) {
    const Axis& axis = shape.axes()[a];
    state_->axes.push_back(axis.size == 1 ? world.alone(axis.name) : state_->split({a}, axis.name));
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

Communicator Mesh::over(const std::vector<std::string>& axes) const {
  const std::vector<std::size_t> along = state_->shape.effective(axes);
  if (along.empty()) return state_->self;
  if (along.size() == 1) return state_->axes[along[0]];
  const auto known = state_->groups.find(along);
  if (known != state_->groups.end()) return known->second;
  return state_->groups.emplace(along, state_->split(along, state_->shape.group_name(axes)))
      .first->second;
}

}  // namespace tessera
