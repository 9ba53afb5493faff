#include "verify/xnnpack_nodes.h"

namespace executorch_tensorrt {

const XnnpackNodeFields* xnnpack_node_fields(std::uint8_t type) {
  static const XnnpackNodeFields one = {{0}, {1}};
  static const XnnpackNodeFields two = {{0, 1}, {2}};
  static const XnnpackNodeFields with_number = {{1}, {2}};
  static const XnnpackNodeFields with_two_lists = {{3}, {4}};
  static const XnnpackNodeFields with_list = {{2}, {3}};
  static const XnnpackNodeFields fully_connected = {{0, 1}, {3}, 2};
  static const XnnpackNodeFields convolution = {{15, 16}, {18}, 17};
  static const XnnpackNodeFields pooling = {{10}, {11}};
  static const XnnpackNodeFields arg_max_pooling = {{6}, {7, 8}};
  static const XnnpackNodeFields concatenations[] = {{{1, 2}, {5}}, {{1, 2, 3}, {5}}, {{1, 2, 3, 4}, {5}}};
  static const XnnpackNodeFields concatenation_of_5 = {{1, 2, 3, 4, 7}, {5}};
  switch (type) {
    case 1:   // add
    case 8:   // divide
    case 12:  // minimum
    case 15:  // multiply
    case 16:  // subtract
    case 26:  // maximum
    case 31:  // PReLU
    case 37:  // batch matrix multiply
      return &two;
    case 2:
      return &fully_connected;
    case 5:   // transpose
    case 9:   // resize
    case 20:  // reshape
      return &with_list;
    case 7:  // convolutions
    case 13:
    case 39:
      return &convolution;
    case 10:  // pad
    case 35:  // slice
      return &with_two_lists;
    case 11:  // average pooling
    case 14:  // max pooling
      return &pooling;
    case 21:
      return &arg_max_pooling;
    case 25:  // leaky ReLU
    case 29:  // ELU
      return &with_number;
    case 32:
    case 33:
    case 34:
      return &concatenations[type - 32];
    case 38:
      return &concatenation_of_5;
    case 36:  // attention: the backend has no code for it
      return nullptr;
    default:
      return type >= 3 && type <= 47 ? &one : nullptr;
  }
}

}  // namespace executorch_tensorrt
