// A C++11 interface to socbfs.h: handles are freed automatically, and failures are exceptions. The rules for threads are those of socbfs.h.
#ifndef SOCBFS_HPP
#define SOCBFS_HPP

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "socbfs.h"

namespace socbfs {

/// A call that failed: its code, and the message with the cure.
class error : public std::runtime_error {
public:
    explicit error(socbfs_code code) : std::runtime_error(socbfs_message()), code_(code) {}
    socbfs_code code() const noexcept { return code_; }

private:
    socbfs_code code_;
};

inline void check(socbfs_code code) {
    if (code != SOCBFS_OK) throw error(code);
}

/// Frees a handle with the function for its type.
template <typename T, void (*Free)(T **)> struct deleter {
    void operator()(T *handle) const noexcept { Free(&handle); }
};
template <typename T, void (*Free)(T **)> using handle = std::unique_ptr<T, deleter<T, Free>>;

/// Stops the making of graphs and searches: from another thread, or after some seconds.
class stopper {
public:
    explicit stopper(double seconds = -1) {
        socbfs_stopper *out = nullptr;
        check(socbfs_stopper_new(seconds, &out));
        handle_.reset(out);
    }
    void stop() const noexcept { socbfs_stopper_stop(handle_.get()); }
    /// From now on it stops the calls of this thread.
    void use() const noexcept { socbfs_stopped_by(handle_.get()); }

private:
    handle<socbfs_stopper, socbfs_stopper_free> handle_;
};

class graph {
public:
    static graph from_csr(const std::vector<uint32_t> &offsets, const std::vector<uint32_t> &targets, bool directed = false) {
        if (offsets.empty() || offsets.back() != targets.size()) throw std::invalid_argument("offsets must end with the number of targets");
        if (uint64_t{offsets.size() - 1} > UINT32_MAX) throw std::invalid_argument("a graph has less than 2^32 vertices");
        graph made;
        socbfs_graph *out = nullptr;
        check(socbfs_graph_from_csr(static_cast<uint32_t>(offsets.size() - 1), offsets.data(), targets.data(), flags(directed), 0, &out));
        made.handle_.reset(out);
        return made;
    }
    static graph from_edges(uint32_t vertices, const std::vector<uint32_t> &pairs, bool directed = false) {
        if (pairs.size() % 2 != 0) throw std::invalid_argument("pairs must hold two numbers for each edge");
        graph made;
        socbfs_graph *out = nullptr;
        check(socbfs_graph_from_edges(vertices, pairs.data(), pairs.size() / 2, flags(directed), 0, &out));
        made.handle_.reset(out);
        return made;
    }
    static graph from_file(const std::string &path, bool directed = false) {
        graph made;
        socbfs_graph *out = nullptr;
        check(socbfs_graph_from_file(path.c_str(), flags(directed), 0, &out));
        made.handle_.reset(out);
        return made;
    }
    uint32_t vertices() const noexcept { return socbfs_graph_vertices(handle_.get()); }
    uint64_t edges() const noexcept { return socbfs_graph_edges(handle_.get()); }
    const socbfs_graph *get() const noexcept { return handle_.get(); }

private:
    graph() = default;
    static uint32_t flags(bool directed) { return directed ? SOCBFS_DIRECTED : 0; }
    handle<socbfs_graph, socbfs_graph_free> handle_;
};

class search {
public:
    explicit search(const graph &over, const socbfs_runtime *runtime = nullptr) : vertices_(over.vertices()) {
        socbfs_search *out = nullptr;
        check(socbfs_search_new(over.get(), runtime, nullptr, nullptr, &out));
        handle_.reset(out);
    }
    socbfs_outcome run(uint32_t root, uint32_t depth = SOCBFS_NONE, uint32_t target = SOCBFS_NONE) {
        socbfs_outcome outcome;
        check(socbfs_search_run_until(handle_.get(), root, depth, target, &outcome));
        return outcome;
    }
    /// Searches from all of `sources` at once. `nearest` then says from which of them each vertex was reached.
    socbfs_outcome run(const std::vector<uint32_t> &sources, uint32_t depth = SOCBFS_NONE, uint32_t target = SOCBFS_NONE) {
        socbfs_outcome outcome;
        check(socbfs_search_run_from(handle_.get(), sources.data(), sources.size(), depth, target, &outcome));
        return outcome;
    }
    std::vector<uint32_t> nearest() const {
        std::vector<uint32_t> sources(vertices_);
        check(socbfs_search_sources(handle_.get(), sources.data(), sources.size()));
        return sources;
    }
    /// Returns only the distances. The search writes them into the returned vector.
    std::vector<uint32_t> distances(uint32_t root, uint32_t depth = SOCBFS_NONE) {
        std::vector<uint32_t> levels(vertices_);
        check(socbfs_search_run_into(handle_.get(), root, depth, SOCBFS_NONE, nullptr, levels.data(), levels.size(), nullptr));
        return levels;
    }
    /// The array of the search itself, valid until the next search. There is none before the first search and after `distances`.
    const uint32_t *parents() const {
        const uint32_t *parents = nullptr;
        check(socbfs_search_parents(handle_.get(), &parents, nullptr));
        if (!parents && vertices_ > 0) throw std::logic_error("there is no tree: no search was run, or the last one left none here");
        return parents;
    }
    std::vector<uint32_t> levels() const {
        std::vector<uint32_t> levels(vertices_);
        check(socbfs_search_levels(handle_.get(), levels.data(), levels.size()));
        return levels;
    }
    /// The number of each vertex's connected component, and how many components there are. No search is needed before.
    std::pair<size_t, std::vector<uint32_t>> components() const {
        std::pair<size_t, std::vector<uint32_t>> found(0, vertices_);
        check(socbfs_search_components(handle_.get(), found.second.data(), found.second.size(), &found.first));
        return found;
    }
    /// What each level of the last search did.
    std::vector<socbfs_level> account() const {
        size_t count = 0;
        check(socbfs_search_account(handle_.get(), nullptr, 0, &count));
        std::vector<socbfs_level> levels(count);
        check(socbfs_search_account(handle_.get(), levels.data(), count, &count));
        return levels;
    }
    void stop() const noexcept { socbfs_search_stop(handle_.get()); }
    void go_on() const noexcept { socbfs_search_go_on(handle_.get()); }
    void deadline(double seconds) const { check(socbfs_search_deadline(handle_.get(), seconds)); }
    const socbfs_search *get() const noexcept { return handle_.get(); }

private:
    uint32_t vertices_;
    handle<socbfs_search, socbfs_search_free> handle_;
};

/// A grid of free and blocked cells, which may change between two searches.
class grid {
public:
    grid(uint32_t rows, uint32_t columns, const uint8_t *cells = nullptr, uint32_t connectivity = SOCBFS_FOUR, uint32_t threads = 0)
        : cells_(size_t{rows} * columns) {
        socbfs_grid *out = nullptr;
        check(socbfs_grid_new(rows, columns, cells, connectivity, threads, &out));
        handle_.reset(out);
    }
    void assign(const std::vector<uint8_t> &cells) { check(socbfs_grid_assign(handle_.get(), cells.data(), cells.size())); }
    void fill(socbfs_cell first, uint32_t rows, uint32_t columns, bool is_free) {
        check(socbfs_grid_fill(handle_.get(), first, rows, columns, is_free));
    }
    socbfs_outcome run(const std::vector<socbfs_cell> &sources, uint32_t depth = SOCBFS_NONE, const socbfs_cell *target = nullptr) {
        socbfs_outcome outcome;
        check(socbfs_grid_run(handle_.get(), sources.data(), sources.size(), depth, target, &outcome));
        return outcome;
    }
    std::vector<uint32_t> levels() const {
        std::vector<uint32_t> levels(cells_);
        check(socbfs_grid_levels(handle_.get(), levels.data(), levels.size()));
        return levels;
    }
    std::vector<uint8_t> steps() const {
        std::vector<uint8_t> steps(cells_);
        check(socbfs_grid_steps(handle_.get(), steps.data(), steps.size()));
        return steps;
    }
    /// The source from which each cell was reached: row * columns + column.
    std::vector<uint32_t> nearest() const {
        std::vector<uint32_t> sources(cells_);
        check(socbfs_grid_sources(handle_.get(), sources.data(), sources.size()));
        return sources;
    }
    /// The cells from one to its nearest source; empty if it was not reached.
    std::vector<socbfs_cell> path(socbfs_cell from) const {
        size_t count = 0;
        check(socbfs_grid_path(handle_.get(), from, nullptr, 0, &count));
        std::vector<socbfs_cell> path(count);
        check(socbfs_grid_path(handle_.get(), from, path.data(), count, &count));
        return path;
    }
    void stop() const noexcept { socbfs_grid_stop(handle_.get()); }
    void go_on() const noexcept { socbfs_grid_go_on(handle_.get()); }
    void deadline(double seconds) const { check(socbfs_grid_deadline(handle_.get(), seconds)); }

private:
    size_t cells_;
    handle<socbfs_grid, socbfs_grid_free> handle_;
};

} // namespace socbfs

#endif
