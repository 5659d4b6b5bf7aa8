// Asks DyNet's library (that of the Python wheel, 2.1.2) for what its builders give that Python has no names for.
//
//     g++ -std=c++11 -D_GLIBCXX_USE_CXX11_ABI=0 record_builders.cc PATH/libdynet-*.so -o record_builders
//     ./record_builders --dynet-seed 3 ../../tests/dynet/data/builders > ../../tests/dynet/data/builders/values.txt
//
// The wheel has no headers: classes are declared with room for what they hold, and are made by the library's own
// constructors. The folder holds a file `clusters`; parameters with their gradients are written there, in DyNet's text
// format, and values are printed.

#include <cmath>
#include <cstdio>
#include <string>
#include <unordered_map>
#include <vector>

namespace dynet {

class Device;
class Tensor;
struct Room { double room[1 << 11]; };

struct Dim {
  Dim(unsigned size) : d{size}, nd(1), bd(1) {}
  unsigned d[7], nd, bd;
};

struct ComputationGraph : Room {
  ComputationGraph();
  ~ComputationGraph();
  const Tensor& forward(const struct Expression&);
  void backward(const struct Expression&, bool full);
};

struct Expression {
  ComputationGraph* pg;
  unsigned i, graph_id;
};

struct ParameterCollection : Room {
  ParameterCollection();
};

struct TextFileSaver : Room {
  TextFileSaver(const std::string& file, bool append);
  ~TextFileSaver();
  void save(const ParameterCollection&, const std::string& key);
};

struct Dict {
  bool frozen = false, map_unk = false;
  int unk_id = -1;
  std::vector<std::string> words;
  std::unordered_map<std::string, int> numbers;
};

#define TREE                                                    \
  void new_graph_impl(ComputationGraph&, bool update);          \
  void start_new_sequence_impl(const std::vector<Expression>&); \
  Expression add_input(int id, std::vector<int> children, const Expression&);

struct NaryTreeLSTMBuilder : Room {
  NaryTreeLSTMBuilder(unsigned n, unsigned layers, unsigned input, unsigned hidden, ParameterCollection&);
  TREE
};
struct UnidirectionalTreeLSTMBuilder : Room {
  UnidirectionalTreeLSTMBuilder(unsigned layers, unsigned input, unsigned hidden, ParameterCollection&);
  TREE
};
struct BidirectionalTreeLSTMBuilder : Room {
  BidirectionalTreeLSTMBuilder(unsigned layers, unsigned input, unsigned hidden, ParameterCollection&);
  TREE
};
struct HierarchicalSoftmaxBuilder : Room {
  HierarchicalSoftmaxBuilder(unsigned size, const std::string& clusters, Dict&, ParameterCollection&);
  void new_graph(ComputationGraph&, bool update);
  Expression neg_log_softmax(const Expression&, unsigned word);
};

void initialize(int& argc, char**& argv, bool shared);
Expression input(ComputationGraph&, const Dim&, const std::vector<float>&, Device*);
Expression squared_norm(const Expression&);
Expression sum(const std::vector<Expression>&);
std::vector<float> as_vector(const Tensor&);
extern Device* default_device;

}  // namespace dynet

using namespace dynet;

static std::vector<float> vector_of(int size, int number) {
  std::vector<float> found;
  for (int at = 0; at < size; ++at) found.push_back(std::cos(at + 3.0 * number));
  return found;
}

static void told(const char* name, ComputationGraph& graph, const std::vector<Expression>& values,
                 const Expression& loss, const ParameterCollection& model, const std::string& folder) {
  for (const Expression& x : values) {
    std::printf("%s", name);
    for (float entry : as_vector(graph.forward(x))) std::printf(" %.8g", entry);
    std::printf("\n");
  }
  graph.forward(loss);
  graph.backward(loss, false);
  TextFileSaver(folder + "/" + name + ".txt", false).save(model, "");
}

// A tree of six nodes: 0, 1, 2 are leaves, 3 has one child, 4 has three, 5 has two.
template <class Builder>
static void tree(const char* name, Builder* builder, int size, const ParameterCollection& model,
                 const std::string& folder) {
  const std::vector<std::vector<int>> children = {{}, {}, {}, {0}, {3, 1, 2}, {4, 0}};
  ComputationGraph graph;
  builder->new_graph_impl(graph, true);
  builder->start_new_sequence_impl({});
  std::vector<Expression> hs, norms;
  for (unsigned node = 0; node < children.size(); ++node) {
    Expression x = input(graph, Dim(size), vector_of(size, node), default_device);
    hs.push_back(builder->add_input(node, children[node], x));
    norms.push_back(squared_norm(hs.back()));
  }
  told(name, graph, hs, sum(norms), model, folder);
}

int main(int argc, char** argv) {
  initialize(argc, argv, false);
  const std::string folder = argv[1];
  ParameterCollection one, two, three, four;
  tree("nary", new NaryTreeLSTMBuilder(2, 2, 3, 4, one), 3, one, folder);
  tree("unidirectional", new UnidirectionalTreeLSTMBuilder(2, 4, 4, two), 4, two, folder);
  tree("bidirectional", new BidirectionalTreeLSTMBuilder(1, 4, 4, three), 4, three, folder);

  Dict words;
  words.numbers.reserve(64);  // older libraries have a map grow otherwise
  HierarchicalSoftmaxBuilder* softmax = new HierarchicalSoftmaxBuilder(3, folder + "/clusters", words, four);
  ComputationGraph graph;
  softmax->new_graph(graph, true);
  Expression x = input(graph, Dim(3), vector_of(3, 0), default_device);
  std::vector<Expression> losses;
  for (unsigned word = 0; word < words.words.size(); ++word) losses.push_back(softmax->neg_log_softmax(x, word));
  told("hierarchical", graph, losses, sum(losses), four, folder);
}
