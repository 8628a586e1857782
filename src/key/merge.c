/*
 * merge.c
 *	  Merges k cursors, forward or backward, with a tree of losers.
 *
 * Each inner node of the tree keeps the cursor that lost the comparison there.  The overall winner
 * is kept beside the tree.  When the winner moves on, only the nodes between its leaf and the root
 * are played again.  A replay takes one comparison per level, while a heap takes two (Knuth, The
 * Art of Computer Programming, volume 3, 5.4.1).
 *
 * A scan reads ahead: the merge copies entries into an array until a child has no more decoded
 * entries.  It copies few entries at first, since the scan may not need more.  A merge whose user
 * may copy whole pages of a child moves entry by entry.
 *
 * The merge knows neither runs nor buffer pages.  Since (key, TID) is a total order, the result
 * does not depend on the order of the children.
 */
#include "postgres.h"

#include "key/merge.h"
#include "miscadmin.h"

/* A child, with a prefix that decides most comparisons. */
typedef struct Player
{
	uint64		rank;			/* prefix of the key; inverted if backward */
	LsmCursor  *cursor;			/* NULL at its end: the child then loses every comparison */
} Player;

typedef struct MergeCursor
{
	LsmCursor	base;
	LsmKeySpace *ks;
	bool		forward;
	bool		ahead;			/* copies entries ahead, into `batch` */
	bool		owns;			/* closes its children */
	bool		pending;		/* the winner still stands on the last entry taken */
	int			most;			/* the most entries to copy into `batch` next */
	int			count;			/* children */
	int			alive;			/* children that are not at their end */
	int			room;
	LsmCursor **children;
	Player		winner;
	int			winner_child;
	Player	   *losers;			/* of node i, from 1 to count - 1 */
	int		   *loser_children;
	LsmEntry   *batch;
} MergeCursor;

static inline Player
make_player(MergeCursor *m, int child)
{
	LsmCursor  *cursor = m->children[child];
	Player		p;

	p.cursor = cursor->valid ? cursor : NULL;
	p.rank = p.cursor != NULL ? 0 : PG_UINT64_MAX;
	if (p.cursor != NULL && m->ks->encoded)
	{
		const LsmEntry *entry = cursor->entry;

		p.rank = entry->aligned ? lsm_key_prefix_padded(entry->key) :
			lsm_key_prefix(entry->key, entry->keylen);
		if (!m->forward)
			p.rank = ~p.rank;
	}
	return p;
}

/* Returns whether a comes before b in the direction of the merge. */
static inline bool
comes_first(MergeCursor *m, const Player *a, const Player *b)
{
	int			c;

	if (b->cursor == NULL)
		return true;
	if (a->cursor == NULL)
		return false;
	if (a->rank != b->rank)
		return a->rank < b->rank;
	c = lsm_key_compare(m->ks, a->cursor->entry, b->cursor->entry);
	return m->forward ? c < 0 : c > 0;
}

/* Play the games below a node. Leaves follow the inner nodes. */
static int
play_subtree(MergeCursor *m, int node, Player *winner)
{
	Player		left;
	Player		right;
	int			left_child;
	int			right_child;

	if (node >= m->count)
	{
		*winner = make_player(m, node - m->count);
		return node - m->count;
	}
	left_child = play_subtree(m, 2 * node, &left);
	right_child = play_subtree(m, 2 * node + 1, &right);
	if (comes_first(m, &left, &right))
	{
		m->losers[node] = right;
		m->loser_children[node] = right_child;
		*winner = left;
		return left_child;
	}
	m->losers[node] = left;
	m->loser_children[node] = left_child;
	*winner = right;
	return right_child;
}

/* Play the winner's games again, after the winner has moved. */
static inline void
replay_winner(MergeCursor *m)
{
	int			child = m->winner_child;
	Player		moving = make_player(m, child);

	for (int node = (m->count + child) / 2; node >= 1; node /= 2)
	{
		Player	   *other = &m->losers[node];
		bool		loses = other->rank < moving.rank;
		uint64		mask;
		uint64		ranks;
		uintptr_t	cursors;
		int			children;

		if (unlikely(other->rank == moving.rank))
			loses = comes_first(m, other, &moving);
		/* The processor cannot predict the winner, so exchange the two without a branch. */
		mask = -(uint64) loses;
		ranks = (other->rank ^ moving.rank) & mask;
		cursors = ((uintptr_t) other->cursor ^ (uintptr_t) moving.cursor) & (uintptr_t) mask;
		children = (m->loser_children[node] ^ child) & (int) mask;
		other->rank ^= ranks;
		moving.rank ^= ranks;
		other->cursor = (LsmCursor *) ((uintptr_t) other->cursor ^ cursors);
		moving.cursor = (LsmCursor *) ((uintptr_t) moving.cursor ^ cursors);
		m->loser_children[node] ^= children;
		child ^= children;
	}
	m->winner = moving;
	m->winner_child = child;
}

/*
 * Copy up to m->most entries of the winners, but stop when a winner needs a new array.  The new
 * array would invalidate the entries copied from that winner's current array.
 */
static void
take_batch(MergeCursor *m)
{
	int			n = 0;

	while (m->winner.cursor != NULL)
	{
		LsmCursor  *cursor = m->winner.cursor;

		m->batch[n++] = *cursor->entry;
		if (n == m->most || cursor->left == 0)
		{
			m->pending = true;
			break;
		}
		cursor->left--;
		cursor->entry += cursor->stride;
		replay_winner(m);
	}
	if (n > 0)
		lsm_cursor_stand(&m->base, m->batch, n - 1);
	m->most = Min(2 * m->most, LSM_DECODED_ENTRIES);
}

/*
 * If only one child has entries left, take its array as it is, and let the child stand on the
 * array's last entry.
 */
static void
take_array(MergeCursor *m)
{
	LsmCursor  *cursor = m->winner.cursor;

	m->base.stride = cursor->stride;
	lsm_cursor_stand(&m->base, cursor->entry, cursor->left);
	cursor->entry += cursor->stride * cursor->left;
	cursor->left = 0;
	m->pending = true;
}

static void
take_winner(MergeCursor *m)
{
	m->base.valid = false;
	if (m->ahead && m->alive == 1)
	{
		take_array(m);
		return;
	}
	if (m->ahead)
	{
		take_batch(m);
		return;
	}
	if (m->winner.cursor == NULL)
		return;
	lsm_cursor_stand(&m->base, m->winner.cursor->entry, 0);
	m->base.at_page = m->winner.cursor->at_page;
	m->base.source = m->winner.cursor;
	m->pending = true;
}

/*
 * Called when a child has waited for the disk.  Let the children from *next to `last` prefetch the
 * pages that they will need.
 */
static void
expect_seeks(MergeCursor *m, int *next, int last, const LsmBound *from, ScanDirection direction)
{
	for (; *next <= Min(last, m->count - 1); (*next)++)
	{
		LsmCursor  *child = m->children[*next];

		if (child->ops->expect != NULL)
			child->ops->expect(child, from, direction);
	}
}

/*
 * Seek in all children. If one of them waits for the disk, the children after it prefetch
 * their pages together.
 */
static void
seek_children(MergeCursor *m, const LsmBound *from, const LsmBound *limit, ScanDirection direction)
{
	int			in_flight = 0;
	int			expected = 0;	/* children before this one were asked to prefetch */

	for (int i = 0; i < m->count; i++)
	{
		lsm_cursor_seek(m->children[i], from, limit, direction);
		in_flight = Max(in_flight, m->children[i]->waited);
		if (unlikely(in_flight > 0))
		{
			expected = Max(expected, i + 1);
			expect_seeks(m, &expected, i + in_flight, from, direction);
		}
		CHECK_FOR_INTERRUPTS();
	}
}

/* Find the winner if at most one child has entries, as in most lookups of a key. */
static void
find_only_one(MergeCursor *m)
{
	for (int i = 0; i < m->count && m->alive > 0; i++)
	{
		if (m->children[i]->valid)
		{
			m->winner = make_player(m, i);
			m->winner_child = i;
			return;
		}
	}
}

static void
merge_seek(LsmCursor *base, const LsmBound *from, const LsmBound *limit, ScanDirection direction)
{
	MergeCursor *m = (MergeCursor *) base;

	m->forward = ScanDirectionIsForward(direction);
	seek_children(m, from, limit, direction);
	base->stride = 1;
	base->at_page = false;
	m->pending = false;
	m->most = 1;
	m->alive = 0;
	for (int i = 0; i < m->count; i++)
		m->alive += m->children[i]->valid;
	m->winner.cursor = NULL;
	if (m->ahead && m->alive <= 1)
		find_only_one(m);
	else if (m->count > 0)
		m->winner_child = play_subtree(m, 1, &m->winner);
	take_winner(m);
}

static void
merge_fill(LsmCursor *base)
{
	MergeCursor *m = (MergeCursor *) base;

	if (m->pending)
	{
		m->pending = false;
		lsm_cursor_next(m->winner.cursor);
		m->alive -= !m->winner.cursor->valid;
		if (m->alive == 1 && m->winner.cursor->valid && m->ahead)
		{
			take_array(m);
			return;
		}
		/* There may be no tree: see find_only_one. */
		if (m->alive == 0)
			m->winner.cursor = NULL;
		else
			replay_winner(m);
	}
	m->base.stride = 1;
	take_winner(m);
}

/*
 * Returns whether all other children stand after this entry of the winner.  Only children that lost
 * to the winner itself need a comparison: they have beaten the other children.
 */
static bool
is_before_losers(MergeCursor *m, const LsmEntry *last)
{
	for (int node = (m->count + m->winner_child) / 2; node >= 1; node /= 2)
	{
		LsmCursor  *loser = m->losers[node].cursor;

		if (loser != NULL && lsm_key_compare(m->ks, last, loser->entry) >= 0)
			return false;
	}
	return true;
}

/* Returns the winner's page if the page's last entry would win, too. */
static Page
merge_page(LsmCursor *base, const LsmEntry **last)
{
	MergeCursor *m = (MergeCursor *) base;
	Page		result = lsm_cursor_page(m->winner.cursor, last);

	return result != NULL && is_before_losers(m, *last) ? result : NULL;
}

static bool
merge_segment(LsmCursor *base, uint32 least_blocks, LsmWholeSegment *whole)
{
	MergeCursor *m = (MergeCursor *) base;

	return lsm_cursor_segment(m->winner.cursor, least_blocks, whole) &&
		is_before_losers(m, &whole->entry.high);
}

static void
merge_skip_page(LsmCursor *base)
{
	MergeCursor *m = (MergeCursor *) base;

	Assert(!m->ahead);			/* so the tree exists */
	lsm_cursor_skip_page(m->winner.cursor);
	m->alive -= !m->winner.cursor->valid;
	replay_winner(m);
	take_winner(m);
}

static void
merge_close(LsmCursor *base)
{
	MergeCursor *m = (MergeCursor *) base;

	for (int i = 0; i < m->count && m->owns; i++)
		lsm_cursor_close(m->children[i]);
	if (m->children)
		pfree(m->children);
	if (m->losers)
		pfree(m->losers);
	if (m->loser_children)
		pfree(m->loser_children);
	if (m->batch)
		pfree(m->batch);
	pfree(m);
}

static const LsmCursorOps merge_ops = {merge_seek, merge_fill, merge_close, merge_page, merge_skip_page,
merge_segment};

/*
 * Create a merge without children.  With `ahead`, the merge serves a scan, which copies no pages.
 * With `owns`, closing the merge also closes its children.
 */
LsmCursor *
lsm_merge_create(LsmKeySpace *ks, bool ahead, bool owns)
{
	MergeCursor *m = palloc0(sizeof(MergeCursor));

	m->base.ops = &merge_ops;
	m->ks = ks;
	m->ahead = ahead;
	m->owns = owns;
	if (ahead)
		m->batch = palloc(LSM_DECODED_ENTRIES * sizeof(LsmEntry));
	return &m->base;
}

/* Set the children.  The caller must seek next. */
void
lsm_merge_set(LsmCursor *merge, LsmCursor **children, int count)
{
	MergeCursor *m = (MergeCursor *) merge;

	if (count > m->room || m->room == 0)
	{
		m->room = Max(8, 2 * count);
		if (m->children)
		{
			pfree(m->children);
			pfree(m->losers);
			pfree(m->loser_children);
		}
		m->children = palloc(m->room * sizeof(LsmCursor *));
		m->losers = palloc(m->room * sizeof(Player));
		m->loser_children = palloc(m->room * sizeof(int));
	}
	m->count = count;
	memcpy(m->children, children, count * sizeof(LsmCursor *));
	m->base.valid = false;
}
