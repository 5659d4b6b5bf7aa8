// Recording in C: expressions, the columns of a graph, and callers that append a node where an inline cache knows its
// type. What a cache does not know goes to a function in Python, which records the node and tells the cache.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <structmember.h>

#define HOT static __attribute__((hot))  // what is called for every node
#define NODE_BITS 32
#define WAYS 4      // entries of a cache that a key may be in
#define ENTRIES 64  // of a cache; a power of two
#define MOST 16     // operands of a caller, arguments of a cell
#define OWNERS 8    // of a cell, whose last calls it remembers itself
#define LITERALS 4  // arguments of a caller beside its operands

typedef struct {
    PyObject *column, *builder;   // the classes of columns, and of what graphs are derived from
    PyObject *parameter;          // the class of parameters
    PyObject *top, *block;        // where the innermost block of a graph is found, and the class of blocks
    Py_ssize_t value;             // where blocks have the graph
    PyObject *place;              // what puts blocks into graphs that Python has to see to
    PyObject *spec, *recorded, *end, *extend;  // names
} State;

static State S;  // one interpreter: the module refuses to be loaded in others

// ---------------------------------------------------------------------------------------------------------- columns

// Columns are arrays of `array.array`, of 32 (types) and 64 bits. No header declares their fields, which are the same in all
// versions of Python; `columns_fit` looks.
typedef struct {
    PyObject_VAR_HEAD
    char *data;
    Py_ssize_t room;
    const void *kind;
    PyObject *weak;
    Py_ssize_t exports;
} Column;

static __attribute__((noinline)) int column_grow(Column *c, int width, Py_ssize_t more) {
    Py_ssize_t n = Py_SIZE(c);
    if (c->exports) {
        PyErr_SetString(PyExc_BufferError, "a column that an array sees cannot grow");
        return -1;
    }
    Py_ssize_t room = (more > n ? n + more : 2 * (n + more)) + 32;  // what is many is seldom followed by as many
    char *data = room < PY_SSIZE_T_MAX / width ? PyMem_Realloc(c->data, room * width) : NULL;
    if (data == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    c->data = data;
    c->room = room;
    return 0;
}

static inline int column_reserve(PyObject *column, int width, Py_ssize_t more) {
    Column *c = (Column *)column;
    return Py_SIZE(c) + more <= c->room ? 0 : column_grow(c, width, more);
}

// Where entries are put for which there is room.
static inline int32_t *types_added(PyObject *column, Py_ssize_t n) {
    Py_ssize_t at = Py_SIZE(column);
    Py_SET_SIZE((Column *)column, at + n);
    return (int32_t *)((Column *)column)->data + at;
}

static inline int64_t *integers_added(PyObject *column, Py_ssize_t n) {
    Py_ssize_t at = Py_SIZE(column);
    Py_SET_SIZE((Column *)column, at + n);
    return (int64_t *)((Column *)column)->data + at;
}

// What is no such array - of graphs that are not run, or note lines - is a list, or knows how to be extended.
static int column_extend(PyObject *column, int width, PyObject *items) {
    if ((PyObject *)Py_TYPE(column) != S.column) {
        PyObject *done = PyObject_CallMethodOneArg(column, S.extend, items);
        Py_XDECREF(done);
        return done == NULL ? -1 : 0;
    }
    PyObject *listed = PySequence_Fast(items, "expected integers");
    Py_ssize_t n = listed != NULL ? PySequence_Fast_GET_SIZE(listed) : 0, i;
    if (listed == NULL || column_reserve(column, width, n)) i = -1;
    else for (i = 0; i < n && i < PySequence_Fast_GET_SIZE(listed); i++) {
        long long x = PyLong_AsLongLong(PySequence_Fast_GET_ITEM(listed, i));
        if (x == -1 && PyErr_Occurred()) break;
        if (width == 4) *types_added(column, 1) = (int32_t)x;
        else *integers_added(column, 1) = x;
    }
    Py_XDECREF(listed);
    return i == n ? 0 : -1;
}

static int columns_fit(void) {
    PyObject *three = PyObject_CallFunction(S.column, "s(iii)", "q", 1, 2, 3);
    if (three == NULL) return 0;
    Column *c = (Column *)three;
    int fit = Py_TYPE(three)->tp_basicsize == sizeof(Column) && Py_SIZE(c) == 3 && c->room >= 3 && !c->weak && !c->exports && ((int64_t *)c->data)[2] == 3;
    Py_DECREF(three);
    if (!fit) PyErr_SetString(PyExc_ImportError, "arrays of another form");
    return fit;
}

// Do something with the references that are the fields from `first` to `last`.
#define HELD(x, Kind, first, last, act) \
    for (size_t at = offsetof(Kind, first); at <= offsetof(Kind, last); at += sizeof(PyObject *)) act(*(PyObject **)((char *)(x) + at))

// ------------------------------------------------------------------------------------------------ graphs, expressions

typedef struct {
    PyObject_HEAD
    PyObject *types, *operands, *integers;  // columns; in graphs that are not run, or note lines, lists
    PyObject *expression_class, *constants, *serial, *dtype;
    long long n;
    char careful;
} Builder;

typedef struct {
    PyObject_HEAD
    PyObject *graph, *spec;
    long long id;
} Handle;

static void builder_dealloc(Builder *g) {
    PyTypeObject *type = Py_TYPE(g);
    HELD(g, Builder, types, dtype, Py_CLEAR);
    type->tp_free(g);
    Py_DECREF(type);
}

// Before a graph goes, its method `_end` gives back what it holds. Nobody would hear what the handler of a signal raises
// meanwhile: that is raised in what the thread does next, and the method called once more.
static void builder_finalize(PyObject *g) {
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);  // first: what looks a name up may clear it
    PyObject *end = Py_XNewRef(_PyType_Lookup(Py_TYPE(g), S.end));
    PyObject *found = end != NULL ? PyObject_CallOneArg(end, g) : NULL;
    if (end != NULL && found == NULL) {
        PyObject *raised = Py_NewRef(PyErr_Occurred());
        PyErr_Clear();
        found = PyObject_CallOneArg(end, g);
        if (found == NULL) PyErr_WriteUnraisable(end);
        PyThreadState_SetAsyncExc(PyThread_get_thread_ident(), raised);
        Py_DECREF(raised);
    }
    Py_XDECREF(found);
    Py_XDECREF(end);
    PyErr_Restore(kind, value, trace);
}

// append(types, operands, integers): the id of the first node
static PyObject *builder_append(Builder *g, PyObject *const *args, Py_ssize_t n_args) {
    if (n_args != 3 || !g->types || !g->operands || !g->integers) {
        PyErr_SetString(PyExc_TypeError, "expected types, operands and integers");
        return NULL;
    }
    Py_ssize_t n = PyObject_Size(args[0]);
    if (n < 0 || column_extend(g->types, 4, args[0]) || column_extend(g->operands, 8, args[1]) || column_extend(g->integers, 8, args[2])) return NULL;
    g->n += n;
    return PyLong_FromLongLong(g->n - n);
}

static PyMethodDef builder_methods[] = {
    {"append", (PyCFunction)(void (*)(void))builder_append, METH_FASTCALL, "Append nodes; the id of the first."},
    {0},
};
static PyMemberDef builder_members[] = {
    {"types", T_OBJECT_EX, offsetof(Builder, types)},
    {"operands", T_OBJECT_EX, offsetof(Builder, operands)},
    {"integers", T_OBJECT_EX, offsetof(Builder, integers)},
    {"expression_class", T_OBJECT_EX, offsetof(Builder, expression_class)},
    {"constants", T_OBJECT_EX, offsetof(Builder, constants)},
    {"serial", T_OBJECT_EX, offsetof(Builder, serial)},
    {"dtype", T_OBJECT_EX, offsetof(Builder, dtype)},
    {"n", T_LONGLONG, offsetof(Builder, n)},
    {"careful", T_BOOL, offsetof(Builder, careful)},
    {0},
};
static PyType_Slot builder_slots[] = {
    {Py_tp_doc, "What of a graph is read and written by recording."},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_dealloc, builder_dealloc},
    {Py_tp_finalize, builder_finalize},
    {Py_tp_methods, builder_methods},
    {Py_tp_members, builder_members},
    {0},
};
static PyType_Spec builder_spec = {
    "edbatch.graph._recorder.Builder", sizeof(Builder), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, builder_slots};

static void handle_dealloc(Handle *x) {
    PyTypeObject *type = Py_TYPE(x);
    PyObject *graph = x->graph, *spec = x->spec;
    type->tp_free(x);
    Py_DECREF(type);
    Py_XDECREF(graph);
    Py_XDECREF(spec);
}

// An expression; one whose graph or spec was deleted Python has to refuse.
static inline int is_handle(PyObject *x) {
    return Py_TYPE(x)->tp_dealloc == (destructor)handle_dealloc && ((Handle *)x)->graph != NULL && ((Handle *)x)->spec != NULL;
}

static PyObject *handle_made(PyTypeObject *type, PyObject *graph, long long id, PyObject *spec) {
    int is_plain = type->tp_dealloc == (destructor)handle_dealloc;
    Handle *x = is_plain ? PyObject_New(Handle, type) : (Handle *)type->tp_alloc(type, 0);
    if (x == NULL) return NULL;
    x->graph = Py_NewRef(graph);
    x->spec = Py_NewRef(spec);
    x->id = id;
    return (PyObject *)x;
}

static PyObject *handle_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    static char *names[] = {"graph", "id", "spec", NULL};
    PyObject *graph, *spec;
    long long id;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OLO", names, &graph, &id, &spec)) return NULL;
    return handle_made(type, graph, id, spec);
}

static PyObject *handle_vectorcall(PyObject *type, PyObject *const *args, size_t flags, PyObject *names) {
    if (PyVectorcall_NARGS(flags) != 3 || names != NULL) {
        PyErr_SetString(PyExc_TypeError, "expected a graph, an id and a spec");
        return NULL;
    }
    long long id = PyLong_AsLongLong(args[1]);
    if (id == -1 && PyErr_Occurred()) return NULL;
    return handle_made((PyTypeObject *)type, args[0], id, args[2]);
}

// A subclass that adds no fields is made and freed as fast as this class, and unseen by the garbage collector: it holds
// the graph, which holds no expressions.
static PyObject *handle_init_subclass(PyObject *type, PyObject *args, PyObject *keywords) {
    PyTypeObject *made = (PyTypeObject *)type;
    int is_plain = made->tp_basicsize == sizeof(Handle) && !made->tp_dictoffset && !made->tp_weaklistoffset;
    if (!is_plain || made->tp_del != NULL || made->tp_finalize != NULL) Py_RETURN_NONE;
    made->tp_flags &= ~Py_TPFLAGS_HAVE_GC;
    made->tp_traverse = NULL;
    made->tp_clear = NULL;
    made->tp_free = PyObject_Free;
    made->tp_dealloc = (destructor)handle_dealloc;
    if (made->tp_new == handle_new && made->tp_init == PyBaseObject_Type.tp_init) made->tp_vectorcall = handle_vectorcall;
    Py_RETURN_NONE;
}

static PyMemberDef handle_members[] = {
    {"graph", T_OBJECT_EX, offsetof(Handle, graph)},
    {"id", T_LONGLONG, offsetof(Handle, id)},
    {"spec", T_OBJECT_EX, offsetof(Handle, spec)},
    {0},
};
static PyMethodDef handle_methods[] = {
    {"__init_subclass__", (PyCFunction)(void (*)(void))handle_init_subclass, METH_CLASS | METH_VARARGS | METH_KEYWORDS, NULL},
    {0},
};
static PyType_Slot handle_slots[] = {
    {Py_tp_doc, "Handle(graph, id, spec)\n--\n\nA node of a graph, perhaps seen through a view, and its spec."},
    {Py_tp_new, handle_new},
    {Py_tp_dealloc, handle_dealloc},
    {Py_tp_members, handle_members},
    {Py_tp_methods, handle_methods},
    {0},
};
static PyType_Spec handle_spec = {
    "edbatch.graph._recorder.Handle", sizeof(Handle), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, handle_slots};

// A graph that nodes are appended to here; NULL: one that Python has to see to.
static inline Builder *builder_of(PyObject *graph) {
    if (!PyObject_TypeCheck(graph, (PyTypeObject *)S.builder)) return NULL;
    Builder *g = (Builder *)graph;
    PyTypeObject *column = (PyTypeObject *)S.column;
    int ready = g->types && Py_TYPE(g->types) == column && g->operands && Py_TYPE(g->operands) == column && g->integers && Py_TYPE(g->integers) == column;
    return ready && g->expression_class && PyType_Check(g->expression_class) && ((PyTypeObject *)g->expression_class)->tp_dealloc == (destructor)handle_dealloc ? g : NULL;
}

// Append a node, wholly or not at all; the id of it, or -1.
static inline long long node_appended(Builder *g, int32_t type, const int64_t *operands, Py_ssize_t n_operands, const int64_t *integers, Py_ssize_t n_integers) {
    if (column_reserve(g->types, 4, 1) || column_reserve(g->operands, 8, n_operands) || column_reserve(g->integers, 8, n_integers)) return -1;
    *types_added(g->types, 1) = type;
    memcpy(integers_added(g->operands, n_operands), operands, 8 * n_operands);
    int64_t *numbers = integers_added(g->integers, n_integers);
    for (Py_ssize_t i = 0; i < n_integers; i++) numbers[i] = integers[i];
    return g->n++;
}

static inline PyObject *expression_of(Builder *g, long long id, PyObject *spec) {
    return handle_made((PyTypeObject *)g->expression_class, (PyObject *)g, id, spec);
}

// The graph of the innermost `with` block, as `ContextStack` keeps it; a new reference.
static PyObject *current_graph(void) {
    PyObject *block = NULL;
    if (PyContextVar_Get(S.top, NULL, &block) < 0) return NULL;
    int fits = block != NULL && (PyObject *)Py_TYPE(block) == S.block;
    PyObject *graph = fits ? Py_XNewRef(*(PyObject **)((char *)block + S.value)) : NULL;
    if (graph == NULL) PyErr_SetString(PyExc_TypeError, "expected a variable whose value is a block");
    Py_XDECREF(block);
    return graph;
}

// ------------------------------------------------------------------------------------------------------------ blocks

typedef struct {
    const int32_t *types;
    const int64_t *operands, *integers, *results, *arguments;  // pairs, see `block.Block`
    Py_ssize_t n, n_operands, n_integers, n_results, n_arguments, n_draws;
} Block;

typedef struct {
    Py_buffer view;
    const int64_t *values;  // NULL: one for all instances
    int64_t value;
} Numbers;

enum { NOTHING, FIRST, DRAW, ARGUMENTS };                   // what integers of blocks are added to
enum { WHICH, RANKS, ORDER, OFFSETS, CHILDREN, RESULTS, ARRAYS };  // of instances

static int block_read(PyObject *given, Block *b) {
    int is_block = PyTuple_Check(given) && PyTuple_GET_SIZE(given) >= 6;
    for (int i = 0; i < 5 && is_block; i++) is_block = PyBytes_Check(PyTuple_GET_ITEM(given, i));
    if (!is_block) {
        PyErr_SetString(PyExc_TypeError, "expected a block");
        return -1;
    }
    const int64_t **pairs[] = {&b->operands, &b->integers, &b->results, &b->arguments};
    Py_ssize_t *counts[] = {&b->n_operands, &b->n_integers, &b->n_results, &b->n_arguments};
    PyObject *types = PyTuple_GET_ITEM(given, 0);
    b->types = (const int32_t *)PyBytes_AS_STRING(types);
    b->n = PyBytes_GET_SIZE(types) / 4;
    for (int i = 0; i < 4; i++) {
        *pairs[i] = (const int64_t *)PyBytes_AS_STRING(PyTuple_GET_ITEM(given, i + 1));
        *counts[i] = PyBytes_GET_SIZE(PyTuple_GET_ITEM(given, i + 1)) / 16;
    }
    b->n_draws = PyLong_AsSsize_t(PyTuple_GET_ITEM(given, 5));
    return b->n_draws == -1 && PyErr_Occurred() ? -1 : 0;
}

// An integer, or an array of them, whose buffer is to be released.
static int numbers_read(PyObject *given, Numbers *x) {
    if (!PyLong_CheckExact(given)) {
        if (PyObject_GetBuffer(given, &x->view, PyBUF_SIMPLE)) return -1;
        x->values = x->view.buf;
        return 0;
    }
    x->value = PyLong_AsLongLong(given);
    return x->value == -1 && PyErr_Occurred() ? -1 : 0;
}

static inline void pairs_put(int64_t *out, const int64_t *pairs, Py_ssize_t n, const int64_t *bases) {
    for (Py_ssize_t i = 0; i < n; i++) out[i] = pairs[2 * i] + bases[pairs[2 * i + 1]];
}

// Append the nodes of n instances, for which there is room; `bases` has room for those of one.
static void instances_put(Builder *g, const Block *blocks, const Numbers *columns, const Numbers *arrays, Py_ssize_t n, int64_t draw, int64_t *bases) {
    const int64_t *ranks = arrays[RANKS].values, *order = arrays[ORDER].values, *offsets = arrays[OFFSETS].values, *children = arrays[CHILDREN].values;
    const int32_t *which = (const int32_t *)arrays[WHICH].values;
    int64_t *results = (int64_t *)arrays[RESULTS].values;
    Py_ssize_t width = results != NULL && n ? arrays[RESULTS].view.len / 8 / n : 0;
    bases[NOTHING] = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        int64_t at = order != NULL ? order[i] : i, rank = ranks != NULL ? ranks[at] : at;
        const Block *b = blocks + (which != NULL ? which[at] : 0);
        bases[FIRST] = g->n;
        bases[DRAW] = draw;
        for (Py_ssize_t k = 0; k < b->n_arguments; k++) {
            int64_t child = b->arguments[2 * k], of = b->arguments[2 * k + 1];
            const Numbers *column = columns + of;
            if (child >= 0) bases[ARGUMENTS + k] = results[children[offsets[at] + child] * width + of];
            else bases[ARGUMENTS + k] = column->values != NULL ? column->values[rank] : column->value;
        }
        memcpy(types_added(g->types, b->n), b->types, 4 * b->n);
        pairs_put(integers_added(g->operands, b->n_operands), b->operands, b->n_operands, bases);
        pairs_put(integers_added(g->integers, b->n_integers), b->integers, b->n_integers, bases);
        if (results != NULL) pairs_put(results + at * width, b->results, b->n_results, bases);
        g->n += b->n;
        draw += b->n_draws;
    }
}

// place(graph, blocks, columns, draw, instances): see `block.place_in_python`
static PyObject *place(PyObject *module, PyObject *const *args, Py_ssize_t n_args) {
    Builder *g = n_args == 5 ? builder_of(args[0]) : NULL;
    if (g == NULL) return PyObject_Vectorcall(S.place, args, n_args, NULL);
    if (!PyTuple_Check(args[1]) || !(PyTuple_Check(args[2]) || PyList_Check(args[2]))) {
        PyErr_SetString(PyExc_TypeError, "expected a tuple of blocks, and a list of columns");
        return NULL;
    }
    Py_ssize_t n_blocks = PyTuple_GET_SIZE(args[1]), n_columns = PySequence_Fast_GET_SIZE(args[2]), n = 0, most = 0, all[3] = {0};
    Block *blocks = PyMem_Calloc(n_blocks + 1, sizeof(Block));
    Numbers *numbers = PyMem_Calloc(n_columns + ARRAYS, sizeof(Numbers)), *arrays = numbers + n_columns;
    int64_t *bases = NULL, draw = PyLong_AsLongLong(args[3]);
    int failed = blocks == NULL || numbers == NULL;
    if (failed) PyErr_NoMemory();
    failed = failed || PyErr_Occurred();
    for (Py_ssize_t i = 0; i < n_blocks && !failed; i++) failed = block_read(PyTuple_GET_ITEM(args[1], i), blocks + i);
    for (Py_ssize_t i = 0; i < n_columns && !failed; i++) failed = numbers_read(PySequence_Fast_GET_ITEM(args[2], i), numbers + i);
    PyObject *times = args[4] != Py_None ? PyTuple_GET_ITEM(args[4], 0) : NULL;
    for (int i = 0; i < ARRAYS && times != NULL && !failed; i++)
        if (PyTuple_GET_ITEM(args[4], i + 1) != Py_None) failed = numbers_read(PyTuple_GET_ITEM(args[4], i + 1), arrays + i);
    for (Py_ssize_t i = 0; i < n_blocks && !failed; i++) {
        Py_ssize_t of_block = times != NULL ? PyLong_AsSsize_t(PyList_GET_ITEM(times, i)) : 1;
        n += of_block;
        all[0] += of_block * blocks[i].n;
        all[1] += of_block * blocks[i].n_operands;
        all[2] += of_block * blocks[i].n_integers;
        if (blocks[i].n_arguments > most) most = blocks[i].n_arguments;
    }
    failed = failed || column_reserve(g->types, 4, all[0]) || column_reserve(g->operands, 8, all[1]) || column_reserve(g->integers, 8, all[2]);
    if (!failed && (bases = PyMem_Malloc((ARGUMENTS + most) * sizeof *bases)) == NULL) PyErr_NoMemory();
    PyObject *first = bases != NULL ? PyLong_FromLongLong(g->n) : NULL;
    if (first != NULL) instances_put(g, blocks, numbers, arrays, n, draw, bases);
    PyMem_Free(bases);
    for (Py_ssize_t i = 0; numbers != NULL && i < n_columns + ARRAYS; i++)
        if (numbers[i].view.obj != NULL) PyBuffer_Release(&numbers[i].view);
    PyMem_Free(numbers);
    PyMem_Free(blocks);
    return first;
}

// ----------------------------------------------------------------------------------------------------------- callers

enum { FIXED, VIEW, LIST, PLACE, CELL, LEAVING, REMEMBERING };  // kinds

typedef struct {
    PyObject *specs, *arguments;  // tuples of the specs of operands and of literals
    PyObject *out;                // spec of the result; of VIEW perhaps several, each with what is added to the id, in tuples
    long long view, step, bound;  // of VIEW: through which the operand is seen, and what is added to its id
    int32_t type;
} Entry;

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *weak, *dict, *slow, *names, *standard;
    PyObject *kept, *watched, *missing;  // of a cell: where the owner's last calls are, in a dictionary or, if None, its own
    Entry *entries;
    int kind, given, n, literals, has_integer;  // how many operands and arguments there are, and whether an integer follows
    int is_method;
    struct { uint64_t version; PyObject *call; int n; } seen[OWNERS];  // last calls, which dictionaries of that version hold
} Caller;

static __attribute__((noinline)) PyObject *slowly(PyObject *slow, PyObject *const *args, size_t flags, PyObject *names) {
    return PyObject_Vectorcall(slow, args, flags & ~PY_VECTORCALL_ARGUMENTS_OFFSET, names);
}

// The parts of a tuple or a slice, or -1: it is neither.
static inline Py_ssize_t parts_of(PyObject *a, PyObject ***parts) {
    if (PyTuple_CheckExact(a)) *parts = ((PyTupleObject *)a)->ob_item;
    else if (PySlice_Check(a)) *parts = &((PySliceObject *)a)->start;  // which stop and step follow
    else return -1;
    return PySlice_Check(a) ? 3 : PyTuple_GET_SIZE(a);
}

// Whether two arguments are the same literal: of one type, and equal to the bit.
static int same_literal(PyObject *a, PyObject *b) {
    PyObject **of_a, **of_b;
    if (a == b) return 1;
    if (Py_TYPE(a) != Py_TYPE(b)) return 0;
    if (PyFloat_CheckExact(a)) return !memcmp(&((PyFloatObject *)a)->ob_fval, &((PyFloatObject *)b)->ob_fval, sizeof(double));
    if (PyLong_CheckExact(a) || PyUnicode_CheckExact(a)) return PyObject_RichCompareBool(a, b, Py_EQ);
    Py_ssize_t n = parts_of(a, &of_a);
    if (n < 0 || n != parts_of(b, &of_b)) return 0;
    for (Py_ssize_t i = 0; i < n; i++)
        if (!same_literal(of_a[i], of_b[i])) return 0;
    return 1;
}

// Whether an argument stays what it is, so that the same object is equal.
static int is_literal(PyObject *a) {
    PyObject **parts;
    Py_ssize_t n = parts_of(a, &parts);
    for (Py_ssize_t i = 0; i < n; i++)
        if (!is_literal(parts[i])) return 0;
    return n >= 0 || a == Py_None || a == Py_Ellipsis || PyBool_Check(a) || PyLong_CheckExact(a) || PyFloat_CheckExact(a) || PyUnicode_CheckExact(a);
}

static size_t literal_hash(PyObject *a) {
    PyObject **parts;
    int over;
    if (PyLong_CheckExact(a)) return (size_t)PyLong_AsLongLongAndOverflow(a, &over) * 31 + 7;
    Py_ssize_t n = parts_of(a, &parts);
    size_t h = n < 0 ? (size_t)Py_TYPE(a) >> 4 : 11;
    for (Py_ssize_t i = 0; i < n; i++) h = h * 33 + literal_hash(parts[i]);
    return h;
}

// The entry of specs and arguments; of a new one (`is_new`) the place: its own, a free one, or the one that its hash names.
static inline Entry *entry_found(Caller *c, PyObject *const *specs, Py_ssize_t n, PyObject *const *literals, int n_literals, long long view, int is_new) {
    if (c->entries == NULL) return NULL;
    size_t h = (size_t)view;
    for (int i = 0; i < n_literals; i++) h = h * 33 + literal_hash(literals[i]);
    for (Py_ssize_t i = 0; i < n; i++) h = h * 5 + ((size_t)specs[i] >> 4);
    h = (h ^ (h >> 6) ^ (h >> 15)) * 0x9E3779B1u >> 3;
    Entry *vacant = NULL;
    for (int way = 0; way < WAYS; way++) {
        Entry *e = c->entries + ((h + way) & (ENTRIES - 1));
        if (e->out == NULL && vacant == NULL) vacant = e;
        if (e->out == NULL || e->view != view || PyTuple_GET_SIZE(e->specs) != n) continue;
        int same = 1;
        for (Py_ssize_t i = 0; i < n; i++) same &= PyTuple_GET_ITEM(e->specs, i) == specs[i];
        for (int i = 0; i < n_literals && same; i++) same = same_literal(PyTuple_GET_ITEM(e->arguments, i), literals[i]);
        if (same) return e;
    }
    return !is_new ? NULL : vacant != NULL ? vacant : c->entries + (h & (ENTRIES - 1));
}

static inline int is_parameter(PyObject *x) { return S.parameter != NULL && PyObject_TypeCheck(x, (PyTypeObject *)S.parameter); }

// A number that is a node of the graph already, by its value: its spec (a new reference) and id; NULL: there is none.
static PyObject *number_of(PyObject *x, PyObject *graph, int64_t *ids, int *n_ids) {
    Builder *g = builder_of(graph);
    if (g == NULL || g->constants == NULL || !PyDict_CheckExact(g->constants)) return NULL;
    double value = PyFloat_CheckExact(x) ? PyFloat_AS_DOUBLE(x) : PyLong_AsDouble(x);
    if (value == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return NULL;
    }
    if (value == 0 || value != value) return NULL;  // which are told by their bits
    PyObject *key = PyFloat_FromDouble(value), *found;
    if (key == NULL) return NULL;
    found = PyDict_GetItemWithError(g->constants, key);
    Py_DECREF(key);
    if (found == NULL || !PyTuple_CheckExact(found) || PyTuple_GET_SIZE(found) != 2) return NULL;
    ids[(*n_ids)++] = PyLong_AsLongLong(PyTuple_GET_ITEM(found, 0));
    return Py_NewRef(PyTuple_GET_ITEM(found, 1));
}

static inline int is_number(PyObject *x) { return PyFloat_CheckExact(x) || PyLong_CheckExact(x); }

// The spec of an operand (a new reference), and the id of an expression of the graph; NULL without an error: it is neither
// that nor a parameter, nor, of several operands, a number that the graph has.
static inline PyObject *operand_of(PyObject *x, int n, PyObject *graph, int64_t *ids, int *n_ids) {
    if (is_handle(x)) {
        Handle *e = (Handle *)x;
        if (graph != e->graph) return NULL;
        ids[(*n_ids)++] = e->id;
        return Py_NewRef(e->spec);
    }
    if (n > 1 && is_number(x)) return number_of(x, graph, ids, n_ids);
    return is_parameter(x) ? PyObject_GetAttr(x, S.spec) : NULL;
}

// The class of an expression seen through a view: that of the graph's, whatever class this one is of.
static inline PyTypeObject *class_of_views(Handle *x) {
    PyObject *found = PyObject_TypeCheck(x->graph, (PyTypeObject *)S.builder) ? ((Builder *)x->graph)->expression_class : NULL;
    return found != NULL && PyType_Check(found) ? (PyTypeObject *)found : Py_TYPE(x);
}

// A list of an expression seen through several views.
static PyObject *views_of(Handle *x, PyObject *steps) {
    Py_ssize_t n = PyTuple_GET_SIZE(steps);
    PyObject *found = PyList_New(n);
    for (Py_ssize_t i = 0; found != NULL && i < n; i++) {
        long long step;
        PyObject *spec, *one = NULL;
        if (PyArg_ParseTuple(PyTuple_GET_ITEM(steps, i), "LO", &step, &spec)) one = handle_made(class_of_views(x), x->graph, x->id + step, spec);
        if (one == NULL) Py_CLEAR(found);
        else PyList_SET_ITEM(found, i, one);
    }
    return found;
}

static inline int small_index(PyObject *x, long long bound, int64_t *out) {
    if (!PyLong_CheckExact(x)) return 0;
    int over;
    long long found = PyLong_AsLongLongAndOverflow(x, &over);
    *out = found;
    return !over && found >= 0 && found < bound;
}

// All arguments by place, of some that are given by name or left out; 0: they are not those that there are.
static __attribute__((noinline)) int completed(Caller *c, PyObject *const *args, Py_ssize_t given, PyObject *names, PyObject **slots) {
    Py_ssize_t all = PyTuple_GET_SIZE(c->names), left_out = PyTuple_GET_SIZE(c->standard);
    if (given > all) return 0;
    for (Py_ssize_t i = 0; i < all; i++) slots[i] = i < given ? args[i] : i < all - left_out ? NULL : PyTuple_GET_ITEM(c->standard, i - all + left_out);
    for (Py_ssize_t k = 0; names != NULL && k < PyTuple_GET_SIZE(names); k++) {
        Py_ssize_t at = given;
        while (at < all && PyTuple_GET_ITEM(c->names, at) != PyTuple_GET_ITEM(names, k)) at++;  // both are interned
        if (at == all) return 0;
        slots[at] = args[given + k];
    }
    for (Py_ssize_t i = given; i < all; i++)
        if (slots[i] == NULL) return 0;
    return 1;
}

HOT PyObject *call_view(Caller *c, PyObject *const *args, size_t flags, PyObject *names) {
    PyObject *slots[3 + LITERALS + 1], *const *all = args;
    if (names != NULL || PyVectorcall_NARGS(flags) != c->given) {
        if (!completed(c, args, PyVectorcall_NARGS(flags), names, slots)) return slowly(c->slow, args, flags, names);
        all = slots;
    }
    Handle *x = (Handle *)all[0];
    Entry *e = is_handle(all[0]) ? entry_found(c, &x->spec, 1, all + 1, c->literals, x->id >> NODE_BITS, 0) : NULL;
    if (e == NULL) return slowly(c->slow, args, flags, names);
    if (PyTuple_CheckExact(e->out)) return views_of(x, e->out);
    return handle_made(class_of_views(x), x->graph, x->id + e->step, e->out);
}

// Operands, arguments, of which the last may be left out, and perhaps an integer.
HOT PyObject *call_node(Caller *c, PyObject *const *args, size_t flags, PyObject *names) {
    int n = c->n, n_literals = c->literals, has_integer = c->has_integer, n_ids = 0;
    PyObject *slots[3 + LITERALS + 1], *const *all = args;
    if (names != NULL || PyVectorcall_NARGS(flags) != c->given) {
        if (!completed(c, args, PyVectorcall_NARGS(flags), names, slots)) return slowly(c->slow, args, flags, names);
        all = slots;
    }
    PyObject *graph = is_handle(all[0]) ? ((Handle *)all[0])->graph : NULL, *opened = NULL, *specs[3] = {NULL, NULL, NULL}, *found = NULL;
    for (int i = 1; i < n && graph == NULL; i++)
        if (is_handle(all[i])) graph = ((Handle *)all[i])->graph;
    if (graph == NULL) {
        if (!has_integer || !is_parameter(all[0])) return slowly(c->slow, args, flags, names);
        if ((opened = graph = current_graph()) == NULL) return NULL;
    }
    Builder *g = builder_of(graph);
    int64_t ids[3], integer = 0;
    int fits = g != NULL;
    for (int i = 0; i < n && fits; i++) {
        specs[i] = operand_of(all[i], n, graph, ids, &n_ids);
        fits = specs[i] != NULL;
    }
    Entry *e = fits ? entry_found(c, specs, n, all + n, n_literals, 0, 0) : NULL;
    if (e != NULL && (!has_integer || small_index(all[n + n_literals], e->bound, &integer))) {
        long long node = node_appended(g, e->type, ids, n_ids, &integer, has_integer);
        if (node >= 0) found = expression_of(g, node, e->out);
    }
    for (int i = 0; i < n; i++) Py_XDECREF(specs[i]);
    Py_XDECREF(opened);
    if (found != NULL) return found;
    if (PyErr_Occurred()) return NULL;
    return slowly(c->slow, args, flags, names);
}

// A list of expressions of one graph: of one spec (LIST), or of those of an entry (PLACE).
HOT PyObject *call_list(Caller *c, PyObject *const *args, size_t flags, PyObject *names) {
    Py_ssize_t given = PyVectorcall_NARGS(flags), n = -1, places = c->kind == PLACE;
    PyObject *xs = given > 0 ? args[0] : NULL, **items = NULL, *specs[MOST];
    if (given > 0 && given <= 1 + places && names == NULL && (PyList_CheckExact(xs) || PyTuple_CheckExact(xs))) {
        n = PySequence_Fast_GET_SIZE(xs);
        items = PySequence_Fast_ITEMS(xs);
    }
    if (n <= 0 || (places && n > MOST) || !is_handle(items[0])) return slowly(c->slow, args, flags, names);
    PyObject *graph = ((Handle *)items[0])->graph;
    specs[0] = ((Handle *)items[0])->spec;
    for (Py_ssize_t i = 0; i < n; i++) {
        Handle *x = (Handle *)items[i];
        if (!is_handle(items[i]) || x->graph != graph || (!places && x->spec != specs[0])) return slowly(c->slow, args, flags, names);
        if (places) specs[i] = x->spec;
    }
    Builder *g = builder_of(graph);
    PyObject *const *axis = given == 2 ? args + 1 : ((PyTupleObject *)c->standard)->ob_item;
    Entry *e = g != NULL ? entry_found(c, specs, places ? n : 1, axis, (int)places, 0, 0) : NULL;
    if (e == NULL) return slowly(c->slow, args, flags, names);
    if (column_reserve(g->types, 4, 1) || column_reserve(g->operands, 8, n + 1)) return NULL;
    if (!places) *integers_added(g->operands, 1) = n;
    int64_t *ids = integers_added(g->operands, n);
    for (Py_ssize_t i = 0; i < n; i++) ids[i] = ((Handle *)items[i])->id;
    *types_added(g->types, 1) = e->type;
    return expression_of(g, g->n++, e->out);
}

static PyObject *cell_call(Caller *c, PyObject *const *args, size_t flags, PyObject *names);
static PyObject *cell_configure(Caller *c, PyObject *args);

// What ends a `with` block, as `base/context_stack.py` says: handlers of signals run between bytecodes, and there is none here.
// It is called once more if it ended by an exception: that may be an interrupt's, which came before it was done.
static PyObject *call_leaving(Caller *c, PyObject *const *args, size_t flags, PyObject *names) {
    Py_ssize_t n = PyVectorcall_NARGS(flags), more = c->kind == REMEMBERING;
    if (n < 1 || n > 4 || names != NULL) {
        PyErr_SetString(PyExc_TypeError, "__exit__() takes an exception: its class, itself, its traceback");
        return NULL;
    }
    PyObject *given[5] = {PyList_New(0)}, *kind, *value, *trace;
    if (given[0] == NULL) return NULL;
    memcpy(given + 1, args, n * sizeof *args);
    PyObject *found = PyObject_Vectorcall(c->slow, given + !more, n + more, NULL);
    if (found == NULL) {
        PyErr_Fetch(&kind, &value, &trace);
        PyObject *again = PyObject_Vectorcall(c->slow, given + !more, n + more, NULL);
        if (again == NULL) PyErr_Clear();
        Py_XDECREF(again);
        PyErr_Restore(kind, value, trace);
    }
    Py_DECREF(given[0]);
    return found;
}

// Caller(kind, operands, has_integer, slow, names of all that is given, what the last are where they are left out)
static PyObject *caller_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    int kind, n, has_integer;
    PyObject *slow, *names, *standard;
    if (!PyArg_ParseTuple(args, "iipOO!O!", &kind, &n, &has_integer, &slow, &PyTuple_Type, &names, &PyTuple_Type, &standard)) return NULL;
    Py_ssize_t literals = PyTuple_GET_SIZE(names) - n - has_integer, most = has_integer ? 0 : literals, least = kind == PLACE;
    if (kind < FIXED || kind > REMEMBERING || n < 1 || n > 3 || literals < least || literals > LITERALS || PyTuple_GET_SIZE(standard) > most || PyTuple_GET_SIZE(standard) < least) {
        PyErr_SetString(PyExc_ValueError, "expected a kind of caller, one to three operands, and up to four arguments");
        return NULL;
    }
    Caller *c = (Caller *)type->tp_alloc(type, 0);
    if (c == NULL) return NULL;
    c->kind = kind;
    c->n = n;
    c->given = (int)PyTuple_GET_SIZE(names);
    c->literals = (int)literals;
    c->has_integer = has_integer;
    c->slow = Py_NewRef(slow);
    c->names = Py_NewRef(names);
    c->standard = Py_NewRef(standard);
    void *calls[] = {call_node, call_view, call_list, call_list, cell_call, call_leaving, call_leaving};
    c->vectorcall = calls[kind];
    return (PyObject *)c;
}

// learn(specs, type, out, arguments, view, step, bound)
static PyObject *caller_learn(Caller *c, PyObject *args) {
    PyObject *specs, *out, *arguments = NULL;
    int type;
    long long view = 0, step = 0, bound = 0;
    if (!PyArg_ParseTuple(args, "O!iO|O!LLL", &PyTuple_Type, &specs, &type, &out, &PyTuple_Type, &arguments, &view, &step, &bound)) return NULL;
    Py_ssize_t n = PyTuple_GET_SIZE(specs), literals = arguments != NULL ? PyTuple_GET_SIZE(arguments) : 0;
    if ((c->kind == PLACE && n > MOST) || (arguments != NULL && !is_literal(arguments))) Py_RETURN_NONE;
    if ((c->kind != PLACE && n != c->n) || literals != c->literals) {
        PyErr_SetString(PyExc_ValueError, "expected a spec for each operand, and all arguments");
        return NULL;
    }
    if (c->entries == NULL && (c->entries = PyMem_Calloc(ENTRIES, sizeof(Entry))) == NULL) return PyErr_NoMemory();
    PyObject *const *given = literals ? ((PyTupleObject *)arguments)->ob_item : NULL;
    Entry *e = entry_found(c, ((PyTupleObject *)specs)->ob_item, n, given, (int)literals, view, 1), old = *e;
    *e = (Entry){Py_NewRef(specs), Py_XNewRef(arguments), Py_NewRef(out), view, step, bound, type};
    HELD(&old, Entry, specs, out, Py_CLEAR);
    Py_RETURN_NONE;
}

static int caller_traverse(Caller *c, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(c));
    HELD(c, Caller, dict, missing, Py_VISIT);
    return 0;
}

static int caller_clear(Caller *c) {
    HELD(c, Caller, dict, missing, Py_CLEAR);
    return 0;
}

static void caller_dealloc(Caller *c) {
    PyTypeObject *type = Py_TYPE(c);
    PyObject_GC_UnTrack(c);
    if (c->weak != NULL) PyObject_ClearWeakRefs((PyObject *)c);
    for (int i = 0; c->entries != NULL && i < ENTRIES; i++) HELD(c->entries + i, Entry, specs, out, Py_CLEAR);
    PyMem_Free(c->entries);
    caller_clear(c);
    type->tp_free(c);
    Py_DECREF(type);
}

static PyObject *bound(PyObject *self, PyObject *owner, PyObject *type) {
    return owner == NULL ? Py_NewRef(self) : PyMethod_New(self, owner);
}

// Functions are pickled and copied by their names.
static PyObject *by_name(PyObject *self, PyObject *none) { return PyObject_GetAttrString(self, "__qualname__"); }

static PyObject *repr_of(PyObject *self) {
    PyObject *name = PyObject_GetAttrString(self, "__qualname__");
    if (name == NULL) {
        PyErr_Clear();
        return PyUnicode_FromFormat("<function at %p>", self);
    }
    PyObject *found = PyUnicode_FromFormat("<function %U at %p>", name, self);
    Py_DECREF(name);
    return found;
}

static PyMethodDef caller_methods[] = {
    {"learn", (PyCFunction)caller_learn, METH_VARARGS, "Have operands of these specs, and arguments, be recorded here."},
    {"configure", (PyCFunction)cell_configure, METH_VARARGS, "Say what calls of a cell are compared with."},
    {"__reduce__", by_name, METH_NOARGS, NULL},
    {0},
};
static PyMemberDef caller_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Caller, vectorcall), READONLY},
    {"__dictoffset__", T_PYSSIZET, offsetof(Caller, dict), READONLY},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Caller, weak), READONLY},
    {0},
};
static PyGetSetDef with_dict[] = {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL}, {0}};
static PyType_Slot caller_slots[] = {
    {Py_tp_new, caller_new},
    {Py_tp_dealloc, caller_dealloc},
    {Py_tp_traverse, caller_traverse},
    {Py_tp_clear, caller_clear},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_descr_get, bound},
    {Py_tp_repr, repr_of},
    {Py_tp_methods, caller_methods},
    {Py_tp_members, caller_members},
    {Py_tp_getset, with_dict},
    {0},
};
static PyType_Spec caller_spec = {
    "edbatch.graph._recorder.Caller", sizeof(Caller), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR, caller_slots};

// ------------------------------------------------------------------------------------------------------------- cells

// The version of a dictionary: no other dictionary has it, nor has this one after a change. 0: Python does not say.
static uint64_t version_of(PyObject *own) {
#if PY_VERSION_HEX < 0x030D0000
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    return ((PyDictObject *)own)->ma_version_tag;
#pragma GCC diagnostic pop
#else
    return 0;
#endif
}

// The name of the last call with n arguments and these keywords, as `keywords.text_of` makes it, a new reference; NULL,
// and perhaps an error, if one is neither a number nor a text.
static PyObject *name_with(Caller *c, int n, PyObject *const *values, PyObject *names) {
    PyObject *given = PyDict_New(), *text = NULL, *name = NULL;
    int plain = given != NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names) && plain; i++) {
        PyObject *x = values[i];
        plain = x == Py_None || PyBool_Check(x) || PyLong_CheckExact(x) || PyFloat_CheckExact(x) || PyUnicode_CheckExact(x);
        plain = plain && PyDict_SetItem(given, PyTuple_GET_ITEM(names, i), x) == 0;
    }
    if (plain && (text = PyObject_Str(given)) != NULL) name = PyUnicode_Concat(PyTuple_GET_ITEM(c->names, n), text);
    Py_XDECREF(given);
    Py_XDECREF(text);
    return name;
}

// The last call with n arguments, and with keywords of a name or NULL, if its owner is as it was, a new reference:
// (specs, type, form, out, dtype, serial, trace, variant, watched), see `inline_cache.py`; else NULL.
static PyObject *last_call(Caller *c, PyObject *owner, int n, PyObject *name) {
    PyObject *own = c->kept != Py_None ? Py_NewRef(c->kept) : PyObject_GenericGetDict(owner, NULL), *call = NULL;
    int is_plain = own != NULL && PyDict_CheckExact(own), slot = ((uintptr_t)own / 64 + n) % OWNERS;
    uint64_t version = is_plain && name == NULL ? version_of(own) : 0;
    if (version != 0 && version == c->seen[slot].version && n == c->seen[slot].n) {
        Py_DECREF(own);
        return Py_NewRef(c->seen[slot].call);
    }
    if (name == NULL) name = PyTuple_GET_ITEM(c->names, n);
    if (is_plain) call = Py_XNewRef(PyDict_GetItemWithError(own, name));
    Py_ssize_t at = n + 7, watched = PyTuple_GET_SIZE(c->watched);
    int like = call != NULL && PyTuple_Check(call) && PyTuple_GET_SIZE(call) == at + watched;
    for (Py_ssize_t i = 0; i < watched && like; i++) {
        PyObject *found = PyDict_GetItemWithError(own, PyTuple_GET_ITEM(c->watched, i));
        like = (found == NULL ? c->missing : found) == PyTuple_GET_ITEM(call, at + i);
    }
    Py_XDECREF(own);
    PyErr_Clear();
    if (!like) Py_CLEAR(call);
    else if (version != 0) {
        c->seen[slot].version = version;
        c->seen[slot].call = call;
        c->seen[slot].n = n;
    }
    return call;
}

HOT PyObject *cell_call(Caller *c, PyObject *const *args, size_t flags, PyObject *names) {
    int first = c->is_method, n = (int)PyVectorcall_NARGS(flags) - first;
    if (n < 0 || n >= PyTuple_GET_SIZE(c->names)) return slowly(c->slow, args, flags, names);
    PyObject *const *given = args + first, *graph = NULL, *call = NULL, *found = NULL, *name = NULL;
    int64_t ids[MOST], integers[MOST];
    int n_ids = 0, n_integers = 0, like = 1;
    for (int i = 0; i < n && graph == NULL; i++)
        if (is_handle(given[i])) graph = Py_NewRef(((Handle *)given[i])->graph);
    if (graph == NULL && (graph = current_graph()) == NULL) return NULL;
    Builder *g = builder_of(graph);
    if (g != NULL && !g->careful && (names == NULL || (name = name_with(c, n, given + n, names)) != NULL)) {
        call = last_call(c, first ? args[0] : NULL, n, name);
        Py_XDECREF(name);
    }
    if (call == NULL) like = 0;
    for (int i = 0; i < n && like; i++) {
        PyObject *want = PyTuple_GET_ITEM(call, i), *x = given[i];
        if (is_handle(x)) {
            like = ((Handle *)x)->spec == want && ((Handle *)x)->graph == graph;
            ids[n_ids++] = ((Handle *)x)->id;
        } else {
            int over;
            like = PyLong_CheckExact(want) && small_index(x, PyLong_AsLongLongAndOverflow(want, &over), integers + n_integers++);
        }
    }
    like = like && PyTuple_GET_ITEM(call, n + 3) == g->dtype && PyTuple_GET_ITEM(call, n + 4) == g->serial;
    if (like) {
        long type = PyLong_AsLong(PyTuple_GET_ITEM(call, n)), form = PyLong_AsLong(PyTuple_GET_ITEM(call, n + 1));
        PyObject *out = PyTuple_GET_ITEM(call, n + 2);
        long long node = node_appended(g, (int32_t)type, ids, n_ids, integers, n_integers);
        if (node < 0) found = NULL;
        else if (form == 1) found = expression_of(g, node, out);
        else if (form == 2) {
            PyObject *a = expression_of(g, node + PyLong_AsLongLong(PyTuple_GET_ITEM(out, 0)), PyTuple_GET_ITEM(out, 1));
            PyObject *b = expression_of(g, node + PyLong_AsLongLong(PyTuple_GET_ITEM(out, 2)), PyTuple_GET_ITEM(out, 3));
            found = a != NULL && b != NULL ? PyTuple_New(2) : NULL;
            if (found == NULL) {
                Py_XDECREF(a);
                Py_XDECREF(b);
            } else {
                PyTuple_SET_ITEM(found, 0, a);
                PyTuple_SET_ITEM(found, 1, b);
            }
        } else {
            PyObject *id = PyLong_FromLongLong(node);
            found = id != NULL ? PyObject_CallMethodObjArgs(out, S.recorded, graph, id, NULL) : NULL;
            Py_XDECREF(id);
        }
    }
    Py_XDECREF(call);
    Py_DECREF(graph);
    if (found != NULL || PyErr_Occurred()) return found;
    return slowly(c->slow, args, flags, names);
}

// configure(slow, kept, names, watched, missing, is_method)
static PyObject *cell_configure(Caller *c, PyObject *args) {
    PyObject *slow, *kept, *names, *watched, *missing;
    int is_method;
    if (!PyArg_ParseTuple(args, "OOO!O!Oi", &slow, &kept, &PyTuple_Type, &names, &PyTuple_Type, &watched, &missing, &is_method)) return NULL;
    if (PyTuple_GET_SIZE(names) > MOST + 1 || (kept != Py_None && !PyDict_CheckExact(kept)) || (kept == Py_None && !is_method) || c->kind != CELL) {
        PyErr_SetString(PyExc_ValueError, "expected a cell of up to 16 arguments, and an owner or a dictionary");
        return NULL;
    }
    memset(c->seen, 0, sizeof c->seen);
    PyObject *old[] = {c->slow, c->kept, c->names, c->watched, c->missing};
    c->slow = Py_NewRef(slow);
    c->kept = Py_NewRef(kept);
    c->names = Py_NewRef(names);
    c->watched = Py_NewRef(watched);
    c->missing = Py_NewRef(missing);
    c->is_method = is_method;
    for (size_t i = 0; i < sizeof old / sizeof *old; i++) Py_XDECREF(old[i]);
    Py_RETURN_NONE;
}

// ------------------------------------------------------------------------------------------------------------ guards

// What a step of a guard reads of its holder, as `graph/step.py` says; of the others Python sees to it.
enum { ATTRIBUTE, VALUE, ITEM, HELD, CLASS, SIZE, KEYS };

// What a step reads that finds an object: a new reference, or NULL. No code of users runs.
static PyObject *read_by(long kind, PyObject *holder, PyObject *key) {
    PyObject *found = NULL;
    if (kind == ATTRIBUTE) return PyObject_GenericGetAttr(holder, key);
    if (kind == CLASS) found = (PyObject *)Py_TYPE(holder);
    else if (kind == VALUE && PyDict_Check(holder)) found = PyDict_GetItemWithError(holder, key);
    else if (kind == HELD && PyType_Check(holder)) found = _PyType_Lookup((PyTypeObject *)holder, key);
    else if (kind == ITEM && (PyList_Check(holder) || PyTuple_Check(holder))) {
        Py_ssize_t at = PyLong_AsSsize_t(key);
        if (at >= 0 && at < Py_SIZE(holder)) found = PySequence_Fast_GET_ITEM(holder, at);
    }
    return Py_XNewRef(found);
}

static int same_size(PyObject *holder, PyObject *type, long long want) {
    if ((PyObject *)Py_TYPE(holder) != type) return 0;
    return want == (PyDict_Check(holder) ? PyDict_GET_SIZE(holder) : PyList_Check(holder) || PyTuple_Check(holder) ? Py_SIZE(holder) : -1);
}

static int same_keys(PyObject *holder, PyObject *keys) {
    if (!PyDict_Check(holder) || PyDict_GET_SIZE(holder) != PyTuple_GET_SIZE(keys)) return 0;
    PyObject *key;
    Py_ssize_t at = 0, i = 0;
    while (PyDict_Next(holder, &at, &key, NULL))
        if (key != PyTuple_GET_ITEM(keys, i++)) return 0;
    return 1;
}

// first_change(steps, addresses, roots): the first step that does not find the same object as before, or -1. An address
// of 0 is that of nothing, -1 of anything; of a size it is the size.
static PyObject *first_change(PyObject *module, PyObject *const *args, Py_ssize_t n_args) {
    if (n_args != 3 || !PyList_Check(args[0]) || !PyList_Check(args[1]) || !PyTuple_Check(args[2]) || PyList_GET_SIZE(args[0]) != PyList_GET_SIZE(args[1])) {
        PyErr_SetString(PyExc_TypeError, "expected steps, an address for each, and roots");
        return NULL;
    }
    Py_ssize_t n = PyList_GET_SIZE(args[0]), roots = PyTuple_GET_SIZE(args[2]), at;
    PyObject *few[64], **found = roots + n <= 64 ? few : PyMem_Malloc((roots + n) * sizeof *found);
    if (found == NULL) return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < roots; i++) found[i] = Py_NewRef(PyTuple_GET_ITEM(args[2], i));
    for (at = 0; at < n; at++) {
        PyObject *step = PyList_GET_ITEM(args[0], at), *key = PyTuple_GET_ITEM(step, 2), *value = NULL;
        long kind = PyLong_AsLong(PyTuple_GET_ITEM(step, 0)), holder = PyLong_AsLong(PyTuple_GET_ITEM(step, 1));
        long long want = PyLong_AsLongLong(PyList_GET_ITEM(args[1], at));
        int same = 0;
        if (holder < 0 || holder >= roots + at || found[holder] == NULL) break;
        if (kind == SIZE) same = same_size(found[holder], key, want);
        else if (kind == KEYS) same = same_keys(found[holder], key);
        else if (kind < SIZE) {
            value = read_by(kind, found[holder], key);
            same = want == -1 || (long long)(intptr_t)value == want;
        }
        if (!same) {
            Py_XDECREF(value);
            break;
        }
        found[roots + at] = value;
    }
    PyErr_Clear();
    for (Py_ssize_t i = 0; i < roots + at; i++) Py_XDECREF(found[i]);
    if (found != few) PyMem_Free(found);
    return PyLong_FromSsize_t(at < n ? at : -1);
}

// ------------------------------------------------------------------------------------------------------------ module

// connect(the class of parameters, the variable of the innermost block, the slot of a block's value, what places blocks in Python)
static PyObject *connect(PyObject *module, PyObject *args) {
    PyObject *parameter, *top, *value, *in_python;
    if (!PyArg_ParseTuple(args, "O!O!O!O", &PyType_Type, &parameter, &PyContextVar_Type, &top, &PyMemberDescr_Type, &value, &in_python)) return NULL;
    Py_XSETREF(S.parameter, Py_NewRef(parameter));
    Py_XSETREF(S.top, Py_NewRef(top));
    Py_XSETREF(S.block, Py_NewRef(PyDescr_TYPE(value)));
    Py_XSETREF(S.place, Py_NewRef(in_python));
    S.value = ((PyMemberDescrObject *)value)->d_member->offset;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"connect", connect, METH_VARARGS, "Say what parameters are, where the open graph is found, and what places blocks in Python."},
    {"first_change", (PyCFunction)(void *)first_change, METH_FASTCALL, "The first step that finds something else, or -1."},
    {"place", (PyCFunction)(void (*)(void))place, METH_FASTCALL, "Append the nodes of instances of blocks."},
    {0},
};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_recorder", "Recording in C; see `recorder`.", -1, functions};

PyMODINIT_FUNC PyInit__recorder(void) {
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL) return NULL;
    PyObject *arrays = PyImport_ImportModule("array");
    S.column = arrays != NULL ? PyObject_GetAttrString(arrays, "array") : NULL;
    Py_XDECREF(arrays);
    if (S.column == NULL || !columns_fit()) return NULL;
    PyType_Spec *specs[] = {&builder_spec, &handle_spec, &caller_spec};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        PyObject *type = PyType_FromSpec(specs[i]);
        if (type == NULL || PyModule_AddType(module, (PyTypeObject *)type) < 0) return NULL;
        if (specs[i] == &builder_spec) S.builder = type;
    }
    S.spec = PyUnicode_InternFromString("spec");
    S.recorded = PyUnicode_InternFromString("recorded");
    S.end = PyUnicode_InternFromString("_end");
    S.extend = PyUnicode_InternFromString("extend");
    return S.spec && S.recorded && S.end && S.extend ? module : NULL;
}
