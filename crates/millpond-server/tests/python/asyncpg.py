import asyncio
import datetime
import sys
import uuid
import asyncpg


async def main():
    pool = await asyncpg.create_pool(
        host="127.0.0.1", port=int(sys.argv[1]), user="postgres", database="postgres",
        min_size=1, max_size=2,
    )
    async with pool.acquire() as c:
        await c.execute("create table t (a int primary key, b text)")
        await c.executemany("insert into t values ($1, $2)", [(i, f"text {i}") for i in range(9)])
    # A pool resets its connection before it gives it to the next.
    async with pool.acquire() as c:
        rows = await c.fetch("select a from t where a = any($1) order by a", [3, 1, 99])
        assert [r["a"] for r in rows] == [1, 3], rows
        rows = await c.fetch("select a from t where b = any($1::text[])", ["text 2"])
        assert [r["a"] for r in rows] == [2], rows
        done = await c.execute(
            "insert into t select * from unnest($1::int[], $2::text[])", [20, 21], ["x", None]
        )
        assert done == "INSERT 0 2", done
        assert await c.fetchval("select array_agg(a order by a) from t where a >= $1", 20) == [20, 21]
        assert await c.fetchval("select $1::uuid", uuid.UUID(int=7)) == uuid.UUID(int=7)
        assert await c.fetchval("select $1::interval", datetime.timedelta(days=1)) == datetime.timedelta(days=1)
        assert await c.fetchval("select jsonb_agg(a) from t where a < 2") == "[0, 1]"
        done = await c.execute(
            "update t set b = v.b from (values (1, 'new')) v(a, b) where v.a = t.a"
        )
        assert done == "UPDATE 1", done
        async with c.transaction():
            read = [r["a"] async for r in c.cursor("select a from t order by a", prefetch=4)]
        assert len(read) == 11, read
    await pool.close()


asyncio.run(main())
