// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <tessera/base/placement.hpp>
#include <tessera/base/types.hpp>

namespace tessera {

/// How arrays of a file for other programs hold a parameter with the shape (rows, columns), or
/// (columns), or that of all experts, one after another. By default one array is the parameter, of
/// any shape.
///
/// Otherwise the columns of the parameter are groups of `group` columns, the first of each of
/// `parts` parts, then the second of each, and so on; an array has all columns of a part.
struct ArrayLayout {
  bool transposed = false;  ///< arrays are (columns, rows)
  bool by_expert = false;   ///< each expert's matrix has arrays of its own
  Size parts = 1, group = 1;
  bool stacked = false;  ///< one array has all parts, one after another

  struct Place {
    Size array, element;
  };
  /// Returns where the element of a parameter is. Arrays count over parts, then over experts.
  Place place_of(const Shape& shape, Size element) const {
    const Size columns = shape.back(),
               rows = by_expert ? shape[shape.size() - 2] : num_elements(shape) / columns;
    const Size row = element / columns % rows, expert = element / columns / rows;
    const Size column = element % columns, part = column / group % parts;
    const Size in_part = column / (group * parts) * group + column % group;
    const Size width = stacked ? columns : columns / parts;
    const Size there = stacked ? part * (columns / parts) + in_part : in_part;
    return {stacked ? expert : expert * parts + part,
            transposed ? there * rows + row : row * width + there};
  }
  /// Returns the number of elements from this one on that follow one another in an array which is
  /// not transposed, at most `count`.
  Size run_from(Size element, Size count) const {
    return parts == 1 ? count : std::min(count, group - element % group);
  }
};

/// A parameter in a file for other programs: its arrays, all of one shape.
struct ExportedParameter {
  std::vector<std::string> names;
  Shape shape;
  ArrayLayout layout{};
};

}  // namespace tessera
