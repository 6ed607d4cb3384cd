import sys
import psycopg

with psycopg.connect(f"host=127.0.0.1 port={sys.argv[1]} user=postgres dbname=postgres") as conn:
    conn.execute("create table t (a int primary key, b text, c numeric, d timestamptz)")
    with conn.cursor(binary=True) as cur:
        for i in range(10):
            cur.execute("insert into t values (%s, %s, %s, now())", (i, f"text {i}", i))
        cur.execute("select a, b, c from t where a = %s", (3,))
        assert cur.fetchone() == (3, "text 3", 3), "row"
        cur.execute("select a from t where a = any(%s) order by a", ([2, 1],))
        assert cur.fetchall() == [(1,), (2,)], "array"
    try:
        conn.execute("insert into t values (1)")
        raise SystemExit("no error")
    except psycopg.errors.UniqueViolation:
        pass

options = r"-c statement_timeout=5s --application-name=two\ words"
with psycopg.connect(
    f"host=127.0.0.1 port={sys.argv[1]} user=postgres dbname=postgres", options=options
) as conn:
    shown = [conn.execute(f"show {name}").fetchone()[0] for name in ("statement_timeout", "application_name")]
    assert shown == ["5s", "two words"], shown
    # A pool resets its connection.
    conn.commit()
    conn.autocommit = True
    conn.execute("set statement_timeout = 0")
    conn.execute("discard all")
    assert conn.execute("show statement_timeout").fetchone()[0] == "5s"
