// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include <tessera/nn/layers/layer_spec.hpp>
#include <tessera/plan/plan_input.hpp>
#include <tessera/tensor/mesh_axes.hpp>

namespace tessera {

/// The placements of a layer's tensors: a layout for every mesh axis. Axes of size 1 and axes that
/// the mesh does not have leave tensors whole, but every axis of the batch splits samples.
struct LayerPlacements {
  std::array<Layout, mesh_axes.size()> axes{};  ///< in the order of mesh_axes

  /// How `model` splits the columns of the inputs and of the output, if their sums have a fixed
  /// order and the axis may split them on any mesh; else without blocks.
  std::array<Split, 2> columns{};

  const Layout& along(std::string_view axis) const { return axes[axis_number(axis)]; }
  friend bool operator==(const LayerPlacements&, const LayerPlacements&) = default;
};

/// Chooses the index that each axis splits of each layer: along `model` with choose_along_model(),
/// along the other axes the first one with a dimension that the axis claims. Throws ConfigError if
/// the mesh cannot split the model so, or if a layer or the loss needs the samples whole that
/// `context` would split.
std::vector<LayerPlacements> place_layers(const PlanInput& input);

/// Returns the placement along `model` in which the loss reads the prediction: replicated, or split
/// by columns if the loss supports that.
Placement loss_placement(const PlanInput& input, const std::vector<LayerPlacements>& layers);

/// Returns the axes that split the samples of a layer's tensors. They are the axes of the batch,
/// but `expert` splits the experts of a layer that has some.
AxisSet sample_axes(const MeshShape& mesh, const LayerPlacements& placements);

/// Returns a layer with the extents that it has on a rank if only `axes` split it.
LayerSpec local_layer(const PlanInput& input, LayerSpec layer, const LayerPlacements& placements,
                      Size rank, AxisSet axes);

}  // namespace tessera
