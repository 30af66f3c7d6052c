/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registered memory for C++ containers: fi_mr_alloc(3) as an allocator and as
 * a memory resource. Header only, C++17; nothing needs linking.
 *
 *	fi_mrrc::memory_resource memory(domain, FI_REMOTE_READ);
 *	std::pmr::vector<double> data(1000, &memory);
 *	auto where = fi_mrrc::query(domain, data.data());
 *	fi_send(ep, data.data(), bytes, where.desc, ...);
 *
 * Objects may be made, used and destroyed by any thread, as far as the
 * container allows. An object keeps a pointer to the domain or heap, which has
 * to outlive all allocated memory. Two objects are equal if they allocate from
 * the same domain or heap, with the same access and flags: so a container takes
 * over another container's memory only if peers have the same rights to that
 * memory.
 */
#ifndef FI_MRRC_HPP
#define FI_MRRC_HPP

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory_resource>
#include <new>
#include <stdexcept>
#include <string>

#include <rdma/fi_ext_mrrc.h>

namespace fi_mrrc
{
inline namespace v1
{

/* A call failed otherwise than for want of memory. */
class error : public std::runtime_error
{
      public:
	error(const char *what, int ret)
	    : std::runtime_error(std::string(what) + ": " + fi_strerror(-ret)),
	      ret_(ret)
	{
	}
	/* -FI_E* */
	int code() const noexcept
	{
		return ret_;
	}

      private:
	int ret_;
};

namespace detail
{

inline void check(const char *what, int ret)
{
	if (ret == -FI_ENOMEM)
		throw std::bad_alloc();
	if (ret)
		throw error(what, ret);
}

/* The domain's own heaps, or one of the application's. */
class source
{
      public:
	source() = default;
	explicit source(fid_domain *domain, uint64_t access,
			uint64_t flags) noexcept
	    : domain_(domain), access_(access), flags_(flags)
	{
		/* another provider's domain is found out at an allocation */
		if (domain && fi_mrrc_alloc_open(domain, &ops_))
			ops_ = nullptr;
	}
	explicit source(fid_mrrc_mr_heap *heap, uint64_t flags) noexcept
	    : heap_(heap), flags_(flags)
	{
	}

	void *allocate(std::size_t bytes, std::size_t align) const
	{
		void *buf;

		/* containers may ask for nothing */
		if (!bytes)
			bytes = 1;
		/* too large for any call is want of memory, too */
		if (bytes > max_bytes)
			throw std::bad_alloc();
		if (heap_)
			check("fi_mrrc_mr_heap_memalign",
			      fi_mrrc_mr_heap_memalign(heap_, align, bytes,
						       flags_, &buf, nullptr));
		else if (ops_ && align <= 16)
			check("fi_mrrc_mr_alloc",
			      fi_mrrc_alloc(ops_, domain_, bytes, access_,
					    flags_, &buf, nullptr));
		else
			check("fi_mrrc_mr_memalign",
			      fi_mrrc_mr_memalign(domain_, align, bytes,
						  access_, flags_, &buf,
						  nullptr));
		return buf;
	}

	void deallocate(void *buf) const noexcept
	{
		/* the provider logs mistakes */
		if (heap_)
			(void) fi_mrrc_mr_heap_free(heap_, buf);
		else if (ops_)
			(void) ops_->release(domain_, buf);
	}

	explicit operator bool() const noexcept
	{
		return domain_ || heap_;
	}
	bool operator==(const source &other) const noexcept
	{
		return domain_ == other.domain_ && heap_ == other.heap_ &&
		       access_ == other.access_ && flags_ == other.flags_;
	}

      private:
	static constexpr std::uint64_t max_bytes = std::uint64_t(1) << 46;

	fid_domain *domain_ = nullptr;
	const fi_mrrc_ops_alloc *ops_ = nullptr;
	fid_mrrc_mr_heap *heap_ = nullptr;
	uint64_t access_ = 0;
	uint64_t flags_ = 0;
};

} // namespace detail

/* Describes the allocation that contains @addr. */
inline fi_mrrc_mr_query_attr query(fid_domain *domain, const void *addr)
{
	fi_mrrc_mr_query_attr attr{};

	attr.size = sizeof(attr);
	detail::check("fi_mrrc_mr_query",
		      fi_mrrc_mr_query(domain, addr, &attr));
	return attr;
}

class memory_resource : public std::pmr::memory_resource
{
      public:
	explicit memory_resource(fid_domain *domain, uint64_t access = 0,
				 uint64_t flags = 0) noexcept
	    : source_(domain, access, flags)
	{
	}
	explicit memory_resource(fid_mrrc_mr_heap *heap,
				 uint64_t flags = 0) noexcept
	    : source_(heap, flags)
	{
	}

      private:
	void *do_allocate(std::size_t bytes, std::size_t align) override
	{
		return source_.allocate(bytes, align);
	}
	void do_deallocate(void *buf, std::size_t, std::size_t) override
	{
		source_.deallocate(buf);
	}
	bool do_is_equal(
		const std::pmr::memory_resource &other) const noexcept override
	{
		auto ours = dynamic_cast<const memory_resource *>(&other);

		return ours && source_ == ours->source_;
	}

	detail::source source_;
};

template <class T> class allocator
{
      public:
	using value_type = T;

	explicit allocator(fid_domain *domain, uint64_t access = 0,
			   uint64_t flags = 0) noexcept
	    : source_(domain, access, flags)
	{
	}
	explicit allocator(fid_mrrc_mr_heap *heap, uint64_t flags = 0) noexcept
	    : source_(heap, flags)
	{
	}
	template <class U>
	allocator(const allocator<U> &other) noexcept : source_(other.source_)
	{
	}

	T *allocate(std::size_t n)
	{
		if (n > std::numeric_limits<std::size_t>::max() / sizeof(T))
			throw std::bad_array_new_length();
		return static_cast<T *>(
			source_.allocate(n * sizeof(T), alignof(T)));
	}
	void deallocate(T *buf, std::size_t) noexcept
	{
		source_.deallocate(buf);
	}

	template <class U>
	bool operator==(const allocator<U> &other) const noexcept
	{
		return source_ == other.source_;
	}
	template <class U>
	bool operator!=(const allocator<U> &other) const noexcept
	{
		return !(*this == other);
	}

      private:
	template <class U> friend class allocator;
	detail::source source_;
};

} // namespace v1
} // namespace fi_mrrc

#endif // FI_MRRC_HPP
