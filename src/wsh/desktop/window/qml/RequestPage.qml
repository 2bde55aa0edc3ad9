import QtQuick
import QtQuick.Controls.Basic
import QtQuick.Layouts

Item {
    ListView {
        id: list
        objectName: "requestList"
        anchors { fill: parent; margins: root.width < 800 ? 8 : 16 }
        spacing: 12
        clip: true
        model: app.requestModel
        boundsBehavior: Flickable.StopAtBounds
        // Cards are few and must not forget what was seen of them.
        cacheBuffer: 100000
        ScrollBar.vertical: ScrollBar { }
        delegate: RequestCard { width: ListView.view.width - 12 }
        footer: Recent { width: ListView.view.width - 12; topPadding: list.count > 0 ? 16 : 0 }
    }
    ColumnLayout {
        visible: list.count === 0
        anchors.centerIn: parent
        width: Math.min(parent.width - 64, 420)
        spacing: 8
        Text { text: "Nothing waits for you"; color: look.c.text; font.pixelSize: 20; font.bold: true; Layout.alignment: Qt.AlignHCenter }
        Text {
            text: "When an agent asks to run something, it appears here with everything you need to decide."
            color: look.c.text_soft
            wrapMode: Text.Wrap
            horizontalAlignment: Text.AlignHCenter
            Layout.fillWidth: true
        }
        PlainButton {
            objectName: "lastOutput"
            visible: app.started !== ""
            text: "Output of the last approval"
            Layout.alignment: Qt.AlignHCenter
            onClicked: app.select(app.started)
        }
    }
    Shortcut { sequence: "J"; enabled: app.page === "requests"; onActivated: app.stepCard(1) }
    Shortcut { sequence: "K"; enabled: app.page === "requests"; onActivated: app.stepCard(-1) }
    Shortcut { sequence: "Space"; enabled: app.page === "requests"; onActivated: list.flick(0, -list.height * 3) }

    // What became of the last ones: approved, declined, and also what expired unanswered.
    component Recent: Column {
        spacing: 2
        Repeater {
            model: app.historyModel
            RowLayout {
                required property int index
                required property string command
                required property string outcome
                required property string reason
                required property var exit_code
                required property var sid
                visible: index < 5
                width: parent.width
                spacing: 8
                Text { objectName: "recent_" + outcome; text: outcome; color: outcome === "approved" ? look.c.running : outcome === "declined" || outcome === "refused" ? look.c.failed : look.c.ended; font.bold: true; font.pixelSize: 12; Layout.preferredWidth: 72 }
                Text { text: command; textFormat: Text.PlainText; color: look.c.text_soft; font.family: "monospace"; font.pixelSize: 12; elide: Text.ElideRight; Layout.fillWidth: true }
                Text { visible: exit_code !== null && exit_code !== undefined; text: "exit " + exit_code; color: exit_code === 0 ? look.c.text_soft : look.c.failed; font.pixelSize: 12 }
                PlainButton { visible: !!sid; text: "Output"; onClicked: app.select(sid) }
            }
        }
    }
}
