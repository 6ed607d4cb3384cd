import sys

from sqlalchemy import (
    Column, Date, Integer, MetaData, Numeric, String, Table, create_engine, delete, func, inspect,
    select, update,
)

engine = create_engine(f"postgresql+psycopg2://postgres@127.0.0.1:{sys.argv[1]}/postgres")
metadata = MetaData()
author = Table(
    "author", metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("name", String(50), nullable=False, unique=True),
    Column("born", Date),
)
book = Table(
    "book", metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("author_id", Integer, index=True),
    Column("price", Numeric(8, 2)),
)
metadata.create_all(engine)
# A second time it finds them.
metadata.create_all(engine)
with engine.begin() as c:
    c.execute(author.insert(), [{"id": 1, "name": "Ann"}, {"id": 2, "name": "Bob"}])
    c.execute(book.insert(), [{"id": i, "author_id": 1 + i % 2, "price": i} for i in range(1, 9)])
    sums = select(author.c.name, func.sum(book.c.price)).join_from(
        author, book, author.c.id == book.c.author_id
    )
    rows = c.execute(sums.group_by(author.c.name).order_by(author.c.name)).all()
    assert [(name, int(total)) for name, total in rows] == [("Ann", 20), ("Bob", 16)], rows
    changed = (
        update(book).where(book.c.author_id == author.c.id, author.c.name == "Ann")
        .values(price=book.c.price + 1).returning(book.c.id)
    )
    assert len(c.execute(changed).all()) == 4
    gone = delete(book).where(book.c.author_id == author.c.id, author.c.name == "Bob")
    assert c.execute(gone).rowcount == 4

found = inspect(engine)
assert found.get_pk_constraint("book")["constrained_columns"] == ["id"]
assert [i["column_names"] for i in found.get_indexes("book")] == [["author_id"]]
assert [u["column_names"] for u in found.get_unique_constraints("author")] == [["name"]]
reflected = MetaData()
reflected.reflect(engine)
types = [repr(column.type) for column in reflected.tables["author"].columns]
assert types == ["INTEGER()", "VARCHAR(length=50)", "DATE()"], types
assert not reflected.tables["author"].c.name.nullable
metadata.drop_all(engine)
assert inspect(engine).get_table_names() == []
